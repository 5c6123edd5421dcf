package replication

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
)

// loaded is a server with versions v1 and v2 of policy p, of one module each.
func loaded(t *testing.T) *server {
	t.Helper()
	s := newServer()
	for _, id := range []string{"v1", "v2"} {
		v := versionWith([]byte("module "+id), id)
		s.done(t, &PutChunk{Digest: v.Digest, Data: []byte("module " + id)})
		s.done(t, &LoadPolicy{v})
	}
	return s
}

func (s *server) change(t *testing.T, op PolicyOp, version string) *model.PolicyState {
	t.Helper()
	s.done(t, &ChangePolicy{Name: "p", Op: op, Version: version, Reason: "too slow"})
	return s.store.Snapshot().PolicyState("p")
}

const v1, v2 = "sha256:v1", "sha256:v2"

func TestPolicies_RolesChange(t *testing.T) {
	s := loaded(t)
	if p := s.change(t, OpActivate, v1); p.Active != v1 || p.Previous != "" {
		t.Errorf("activated: %+v", p)
	}
	s.refuses(t, CodeConflict, "its own shadow", &ChangePolicy{Name: "p", Op: OpShadow, Version: v1})
	if p := s.change(t, OpShadow, v2); p.Shadow != v2 {
		t.Errorf("shadow: %+v", p)
	}
	if p := s.change(t, OpActivate, v2); p.Active != v2 || p.Previous != v1 || p.Shadow != "" {
		t.Errorf("activated: %+v", p)
	}
	if p := s.change(t, OpRollback, ""); p.Active != v1 || p.Previous != v2 {
		t.Errorf("rolled back: %+v", p)
	}
	s.change(t, OpActivate, v2)
	p := s.change(t, OpTrip, "")
	if p.Active != v1 || p.Previous != "" || p.Tripped[v2] != "too slow" {
		t.Errorf("tripped: %+v", p)
	}
	s.refuses(t, CodeConflict, "taken out of service: too slow", &ChangePolicy{Name: "p", Op: OpActivate, Version: v2})
	s.refuses(t, CodeConflict, "no version to roll back to", &ChangePolicy{Name: "p", Op: OpRollback})
	if p := s.change(t, OpTrip, v1); p.Active != "" || len(p.Tripped) != 2 {
		t.Errorf("without a version the default decides: %+v", p)
	}
	if p := s.change(t, OpReset, ""); p != nil {
		t.Errorf("nothing is left of it: %+v", p)
	}
}

func TestPolicies_Trials(t *testing.T) {
	s := loaded(t)
	try := func(version string, until int64) {
		t.Helper()
		s.done(t, &ChangePolicy{Name: "p", Op: OpActivate, Version: version, Until: until})
	}
	try(v1, 100)
	s.refuses(t, CodeConflict, "is over or was confirmed", &ChangePolicy{Name: "p", Op: OpRollback, Until: 99})
	s.done(t, &ChangePolicy{Name: "p", Op: OpRollback, Until: 100})
	if p := s.store.Snapshot().PolicyState("p"); p.Active != "" || p.Previous != v1 || p.Until != 0 {
		t.Errorf("after the trial of a first version: %+v", p)
	}
	try(v1, 0)
	try(v2, 200)
	try(v2, 0) // confirmed
	if p := s.store.Snapshot().PolicyState("p"); p.Active != v2 || p.Previous != v1 || p.Until != 0 {
		t.Errorf("confirmed: %+v", p)
	}
	s.refuses(t, CodeConflict, "was confirmed", &ChangePolicy{Name: "p", Op: OpRollback, Until: 200})
}

// The state says how the last trial ended, through snapshots too.
func TestPolicies_TellHowTrialsEnded(t *testing.T) {
	s := loaded(t)
	s.done(t, &Bootstrap{ClusterID: "c", Version: trialsFrom - 1})
	activate := func(version string, until int64) Command {
		return &ChangePolicy{Name: "p", Op: OpActivate, Version: version, Until: until}
	}
	last := func() model.Trial { return s.store.Snapshot().PolicyState("p").LastTrial }
	s.done(t, activate(v1, 50))
	s.done(t, activate(v1, 0))
	if last() != (model.Trial{}) {
		t.Error("servers of a release that does not note it would have another state")
	}
	s.done(t, &SetVersion{trialsFrom})
	for _, c := range []struct {
		end  Command
		want model.TrialEnd
	}{
		{activate(v2, 0), model.TrialConfirmed},
		{activate(v1, 0), model.TrialReplaced},
		{&ChangePolicy{Name: "p", Op: OpRollback, Until: 101}, model.TrialExpired},
		{&ChangePolicy{Name: "p", Op: OpRollback}, model.TrialRolledBack},
		{&ChangePolicy{Name: "p", Op: OpTrip, Reason: "it fails"}, model.TrialTripped},
		{&ChangePolicy{Name: "p", Op: OpUnload, Version: v2, Force: true}, model.TrialUnloaded},
	} {
		s.done(t, &ChangePolicy{Name: "p", Op: OpReset})
		s.done(t, activate(v1, 0))
		s.done(t, activate(v2, 100))
		before := last()
		s.done(t, activate(v2, 101)) // it goes on for longer
		if last() != before {
			t.Errorf("a trial that was prolonged ended: %+v", last())
		}
		s.done(t, c.end)
		if got := last(); got.Version != v2 || got.Ended != c.want || got.Time == 0 {
			t.Errorf("it ended by %+v, want %q", got, c.want)
		}
	}
	other := newServer()
	if err := other.fsm.Restore(io.NopCloser(bytes.NewReader(s.persist(t)))); err != nil {
		t.Fatal(err)
	}
	if got := other.store.Snapshot().PolicyState("p").LastTrial; got != last() {
		t.Errorf("restored it ended by %+v", got)
	}
}

func TestPolicies_WhatIsNotFitIsNotActivated(t *testing.T) {
	s := loaded(t)
	s.done(t, &CheckPolicy{Version: v1, Server: "s1", Check: model.PolicyCheck{OK: true}})
	s.done(t, &CheckPolicy{Version: v1, Server: "s2", Check: model.PolicyCheck{Error: "no such hook"}})
	s.refuses(t, CodeConflict, "failed on server s2: no such hook", &ChangePolicy{Name: "p", Op: OpActivate, Version: v1})
	s.refuses(t, CodeNotFound, `no version "sha256:v9"`, &ChangePolicy{Name: "p", Op: OpActivate, Version: "sha256:v9"})
	s.refuses(t, CodeNotFound, "policy q has no version", &ChangePolicy{Name: "q", Op: OpActivate, Version: v2})
	s.refuses(t, CodeNotFound, "no policy version", &CheckPolicy{Version: "x"})
	s.done(t, &ChangePolicy{Name: "p", Op: OpActivate, Version: v2})
	s.refuses(t, CodeConflict, "is active", &ChangePolicy{Name: "p", Op: OpUnload, Version: v2})
	s.refuses(t, CodeConflict, "in use with other grants", &LoadPolicy{&model.PolicyVersion{
		ID: v2, Name: "p", Kind: model.PolicyWasm, Grants: []string{"keepRedundant"},
	}})
	s.refuses(t, CodeExists, "is loaded as policy p", &LoadPolicy{&model.PolicyVersion{ID: v2, Name: "q", Kind: model.PolicyBuiltin}})
	s.done(t, &ChangePolicy{Name: "p", Op: OpUnload, Version: v2, Force: true})
	if sn := s.store.Snapshot(); sn.PolicyVersion(v2) != nil || sn.PolicyState("p") != nil || len(s.modules.whole) != 1 {
		t.Error("something is left of what was unloaded")
	}
}

func TestPolicies_ModulesArriveWhole(t *testing.T) {
	s := newServer()
	module := bytes.Repeat([]byte("0123456789"), 1000)
	v := versionWith(module, "v1")
	put := func(offset int, data []byte) {
		s.done(t, &PutChunk{Digest: v.Digest, Offset: int64(offset), Data: data})
	}
	s.refuses(t, CodeNotFound, "has not come", &LoadPolicy{v})
	s.refuses(t, CodeTooLarge, "at most", &PutChunk{Digest: v.Digest, Data: make([]byte, MaxChunk+1)})
	s.refuses(t, CodeTooLarge, "at most", &PutChunk{Digest: v.Digest, Offset: MaxModule, Data: []byte{1}})
	put(0, module[:4000])
	put(0, module[:4000]) // again, as after an outcome that was not known
	s.refuses(t, CodeInvalid, "4000 of 10000 bytes", &LoadPolicy{v})
	s.refuses(t, CodeConflict, "4000 bytes have come", &PutChunk{Digest: v.Digest, Offset: 5000, Data: module[5000:]})
	put(4000, bytes.Repeat([]byte("x"), 6000))
	s.refuses(t, CodeInvalid, "what came is sha256:", &LoadPolicy{v})
	put(0, module[:4000]) // sent once more
	put(4000, module[4000:])
	s.done(t, &LoadPolicy{v})
	if got, err := s.modules.Get(v.Digest); err != nil || !bytes.Equal(got, module) || len(s.store.Snapshot().Uploads()) != 0 {
		t.Errorf("module of %d bytes, %v", len(got), err)
	}
	same := versionWith(module, "v2") // another configuration
	s.done(t, &LoadPolicy{same})
	before := s.store.Snapshot().PolicyVersion(v2)
	s.done(t, &LoadPolicy{versionWith(module, "v2")})
	if s.store.Snapshot().PolicyVersion(v2) != before {
		t.Error("the same was loaded twice")
	}
}

func TestPolicies_UploadsThatNobodyGoesOnWithMakePlace(t *testing.T) {
	s := newServer()
	put := func(time int64, digest string) *Result {
		return s.apply(t, &Entry{Time: time, Command: &PutChunk{Digest: digest, Data: []byte("x")}})
	}
	for i := range maxUploads {
		put(0, string(rune('a'+i)))
	}
	if r := put(1, "one too many"); r.Err == nil || r.Err.Code != CodeConflict {
		t.Errorf("answered %+v", r)
	}
	if r := put(uploadIdle+1, "later"); r.Err != nil || len(s.store.Snapshot().Uploads()) != 1 {
		t.Errorf("answered %+v", r)
	}
}

// A server that cannot keep a module that the others keep must not go on.
func TestPolicies_AServerThatCannotKeepAModuleStops(t *testing.T) {
	s := newServer()
	v := versionWith([]byte("m"), "v1")
	s.done(t, &PutChunk{Digest: v.Digest, Data: []byte("m")})
	s.modules.fails = errors.New("disk full")
	answer := s.fsm.Apply(&raft.Log{Index: 2, Data: Encode(&Entry{Command: &LoadPolicy{v}})})
	if err, _ := answer.(error); !errors.Is(err, s.modules.fails) || s.fsm.stopped() == nil {
		t.Errorf("answered %v", answer)
	}
	if s.store.Snapshot().Index() != 1 {
		t.Error("the state went on")
	}
}
