package fsm_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
)

// loaded returns a server with versions v1 and v2 of policy p, of one module each.
func loaded(t *testing.T) *server {
	t.Helper()
	s := newServer()
	for _, id := range []string{"v1", "v2"} {
		v := replicationtest.PolicyVersion([]byte("module "+id), id)
		s.MustDo(t, &replication.PutChunk{Digest: v.Digest, Data: []byte("module " + id)})
		s.MustDo(t, &replication.LoadPolicy{Version: v})
	}
	return s
}

func change(t *testing.T, s *server, op replication.PolicyOp, version string) *model.PolicyState {
	t.Helper()
	s.MustDo(t, &replication.ChangePolicy{Name: "p", Op: op, Version: version, Reason: "too slow"})
	return s.Store.Snapshot().PolicyState("p")
}

const v1, v2 = "sha256:v1", "sha256:v2"

func TestChangePolicy_Roles(t *testing.T) {
	s := loaded(t)
	if p := change(t, s, replication.OpActivate, v1); p.Active != v1 || p.Previous != "" {
		t.Errorf("activated: %+v", p)
	}
	refuses(t, s, replication.CodeConflict, "its own shadow", &replication.ChangePolicy{Name: "p", Op: replication.OpShadow, Version: v1})
	if p := change(t, s, replication.OpShadow, v2); p.Shadow != v2 {
		t.Errorf("shadow: %+v", p)
	}
	if p := change(t, s, replication.OpActivate, v2); p.Active != v2 || p.Previous != v1 || p.Shadow != "" {
		t.Errorf("activated: %+v", p)
	}
	if p := change(t, s, replication.OpRollback, ""); p.Active != v1 || p.Previous != v2 {
		t.Errorf("rolled back: %+v", p)
	}
	change(t, s, replication.OpActivate, v2)
	p := change(t, s, replication.OpTrip, "")
	if p.Active != v1 || p.Previous != "" || p.Tripped[v2] != "too slow" {
		t.Errorf("tripped: %+v", p)
	}
	refuses(t, s, replication.CodeConflict, "is tripped: too slow", &replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: v2})
	refuses(t, s, replication.CodeConflict, "no version to roll back to", &replication.ChangePolicy{Name: "p", Op: replication.OpRollback})
	if p := change(t, s, replication.OpTrip, v1); p.Active != "" || len(p.Tripped) != 2 {
		t.Errorf("an active version remains after the last one was tripped: %+v", p)
	}
	if p := change(t, s, replication.OpReset, ""); p != nil {
		t.Errorf("state remains after the last role ended: %+v", p)
	}
}

func TestChangePolicy_Trials(t *testing.T) {
	s := loaded(t)
	try := func(version string, until int64) {
		t.Helper()
		s.MustDo(t, &replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: version, Until: until})
	}
	try(v1, 100)
	refuses(t, s, replication.CodeConflict, "has ended or was confirmed", &replication.ChangePolicy{Name: "p", Op: replication.OpRollback, Until: 99})
	s.MustDo(t, &replication.ChangePolicy{Name: "p", Op: replication.OpRollback, Until: 100})
	if p := s.Store.Snapshot().PolicyState("p"); p.Active != "" || p.Previous != v1 || p.Until != 0 {
		t.Errorf("after the trial of a first version: %+v", p)
	}
	try(v1, 0)
	try(v2, 200)
	try(v2, 0) // confirmed
	if p := s.Store.Snapshot().PolicyState("p"); p.Active != v2 || p.Previous != v1 || p.Until != 0 {
		t.Errorf("confirmed: %+v", p)
	}
	refuses(t, s, replication.CodeConflict, "was confirmed", &replication.ChangePolicy{Name: "p", Op: replication.OpRollback, Until: 200})
}

// The state records how the last trial ended, and snapshots retain it.
func TestChangePolicy_RecordsHowTrialsEnded(t *testing.T) {
	s := loaded(t)
	s.MustDo(t, &replication.Bootstrap{ClusterID: "c", Version: fsm.TrialsFrom - 1})
	activate := func(version string, until int64) replication.Command {
		return &replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: version, Until: until}
	}
	last := func() model.Trial { return s.Store.Snapshot().PolicyState("p").LastTrial }
	s.MustDo(t, activate(v1, 50))
	s.MustDo(t, activate(v1, 0))
	if last() != (model.Trial{}) {
		t.Error("the end of a trial was recorded although the cluster version lacks it")
	}
	s.MustDo(t, &replication.SetVersion{Version: fsm.TrialsFrom})
	for _, c := range []struct {
		end  replication.Command
		want model.TrialEnd
	}{
		{activate(v2, 0), model.TrialConfirmed},
		{activate(v1, 0), model.TrialReplaced},
		{&replication.ChangePolicy{Name: "p", Op: replication.OpRollback, Until: 101}, model.TrialExpired},
		{&replication.ChangePolicy{Name: "p", Op: replication.OpRollback}, model.TrialRolledBack},
		{&replication.ChangePolicy{Name: "p", Op: replication.OpTrip, Reason: "it fails"}, model.TrialTripped},
		{&replication.ChangePolicy{Name: "p", Op: replication.OpUnload, Version: v2, Force: true}, model.TrialUnloaded},
	} {
		s.MustDo(t, &replication.ChangePolicy{Name: "p", Op: replication.OpReset})
		s.MustDo(t, activate(v1, 0))
		s.MustDo(t, activate(v2, 100))
		before := last()
		s.MustDo(t, activate(v2, 101)) // extends the trial
		if last() != before {
			t.Errorf("an extended trial ended: %+v", last())
		}
		s.MustDo(t, c.end)
		if got := last(); got.Version != v2 || got.Ended != c.want || got.Time == 0 {
			t.Errorf("the trial ended by %+v, want %q", got, c.want)
		}
	}
	other := newServer()
	if err := other.FSM.Restore(io.NopCloser(bytes.NewReader(s.Persist(t)))); err != nil {
		t.Fatal(err)
	}
	if got := other.Store.Snapshot().PolicyState("p").LastTrial; got != last() {
		t.Errorf("after a restore the trial ended by %+v", got)
	}
}

func TestChangePolicy_RefusesUnusableVersions(t *testing.T) {
	s := loaded(t)
	s.MustDo(t, &replication.CheckPolicy{Version: v1, Server: "s1", Check: model.PolicyCheck{OK: true}})
	s.MustDo(t, &replication.CheckPolicy{Version: v1, Server: "s2", Check: model.PolicyCheck{Error: "no such hook"}})
	refuses(t, s, replication.CodeConflict, "failed on server s2: no such hook", &replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: v1})
	refuses(t, s, replication.CodeNotFound, `no version "sha256:v9"`, &replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: "sha256:v9"})
	refuses(t, s, replication.CodeNotFound, "policy q has no version", &replication.ChangePolicy{Name: "q", Op: replication.OpActivate, Version: v2})
	refuses(t, s, replication.CodeNotFound, "not found", &replication.CheckPolicy{Version: "x"})
	s.MustDo(t, &replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: v2})
	refuses(t, s, replication.CodeConflict, "is active", &replication.ChangePolicy{Name: "p", Op: replication.OpUnload, Version: v2})
	refuses(t, s, replication.CodeConflict, "in use with other grants", &replication.LoadPolicy{Version: &model.PolicyVersion{
		ID: v2, Name: "p", Kind: model.PolicyWasm, Grants: []string{"keepRedundant"},
	}})
	refuses(t, s, replication.CodeExists, "already loaded as policy p", &replication.LoadPolicy{Version: &model.PolicyVersion{ID: v2, Name: "q", Kind: model.PolicyBuiltin}})
	s.MustDo(t, &replication.ChangePolicy{Name: "p", Op: replication.OpUnload, Version: v2, Force: true})
	if sn := s.Store.Snapshot(); sn.PolicyVersion(v2) != nil || sn.PolicyState("p") != nil || s.Modules.Len() != 1 {
		t.Error("an unloaded version left something behind")
	}
}

func TestLoadPolicy_RequiresACompleteUpload(t *testing.T) {
	s := newServer()
	module := bytes.Repeat([]byte("0123456789"), 1000)
	v := replicationtest.PolicyVersion(module, "v1")
	put := func(offset int, data []byte) {
		s.MustDo(t, &replication.PutChunk{Digest: v.Digest, Offset: int64(offset), Data: data})
	}
	refuses(t, s, replication.CodeNotFound, "was not uploaded", &replication.LoadPolicy{Version: v})
	refuses(t, s, replication.CodeTooLarge, "is too large", &replication.PutChunk{Digest: v.Digest, Data: make([]byte, replication.MaxChunk+1)})
	refuses(t, s, replication.CodeTooLarge, "is too large", &replication.PutChunk{Digest: v.Digest, Offset: replication.MaxModule, Data: []byte{1}})
	put(0, module[:4000])
	put(0, module[:4000]) // repeated, as after an unknown outcome
	refuses(t, s, replication.CodeInvalid, "4000 of 10000 bytes", &replication.LoadPolicy{Version: v})
	refuses(t, s, replication.CodeConflict, "4000 bytes were received", &replication.PutChunk{Digest: v.Digest, Offset: 5000, Data: module[5000:]})
	put(4000, bytes.Repeat([]byte("x"), 6000))
	refuses(t, s, replication.CodeInvalid, "digest mismatch: uploaded sha256:", &replication.LoadPolicy{Version: v})
	put(0, module[:4000]) // sent again
	put(4000, module[4000:])
	s.MustDo(t, &replication.LoadPolicy{Version: v})
	if got, err := s.Modules.Get(v.Digest); err != nil || !bytes.Equal(got, module) || len(s.Store.Snapshot().Uploads()) != 0 {
		t.Errorf("module of %d bytes, %v", len(got), err)
	}
	same := replicationtest.PolicyVersion(module, "v2") // another configuration
	s.MustDo(t, &replication.LoadPolicy{Version: same})
	before := s.Store.Snapshot().PolicyVersion(v2)
	s.MustDo(t, &replication.LoadPolicy{Version: replicationtest.PolicyVersion(module, "v2")})
	if s.Store.Snapshot().PolicyVersion(v2) != before {
		t.Error("an equal version was stored again")
	}
}

func TestPutChunk_DropsIdleUploads(t *testing.T) {
	s := newServer()
	put := func(time int64, digest string) *replication.Result {
		return s.Apply(t, &replication.Entry{Time: time, Command: &replication.PutChunk{Digest: digest, Data: []byte("x")}})
	}
	for i := range fsm.MaxUploads {
		put(0, string(rune('a'+i)))
	}
	if r := put(1, "one too many"); r.Err == nil || r.Err.Code != replication.CodeConflict {
		t.Errorf("response %+v", r)
	}
	if r := put(fsm.UploadIdle+1, "later"); r.Err != nil || len(s.Store.Snapshot().Uploads()) != 1 {
		t.Errorf("response %+v", r)
	}
}

// A server that cannot store a module that the others store must halt.
func TestLoadPolicy_HaltsIfTheModuleCannotBeStored(t *testing.T) {
	s := newServer()
	v := replicationtest.PolicyVersion([]byte("m"), "v1")
	s.MustDo(t, &replication.PutChunk{Digest: v.Digest, Data: []byte("m")})
	full := errors.New("disk full")
	s.Modules.Fail(full)
	answer := s.FSM.Apply(&raft.Log{Index: 2, Data: codec.Encode(&replication.Entry{Command: &replication.LoadPolicy{Version: v}})})
	if err, _ := answer.(error); !errors.Is(err, full) || s.FSM.Err() == nil {
		t.Errorf("response %v", answer)
	}
	if s.Store.Snapshot().Index() != 1 {
		t.Error("the state changed")
	}
}
