package fsm_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
)

// A server that restores a snapshot has the state of the server that wrote it, and
// derives the same states from later entries.
func TestSnapshot_RestoreIsEqualToApplying(t *testing.T) {
	replicationtest.CheckProperty(t, 1, func(t *rapid.T) {
		one := newServer()
		h := &history{T: t, Snap: one.Store.Snapshot()}
		grow := func(others ...*server) {
			for range rapid.IntRange(1, 25).Draw(t, "entries") {
				h.Snap = one.Store.Snapshot()
				e := h.Entry()
				result := one.Apply(t, e)
				for _, other := range others {
					if diff := cmp.Diff(result, other.Apply(t, e), replicationtest.Equal); diff != "" {
						t.Fatalf("%T: servers have different results:\n%s", e.Command, diff)
					}
				}
			}
		}
		replica := newServer()
		grow(replica)
		restored := newServer()
		stream := one.Persist(t)
		if err := restored.FSM.Restore(io.NopCloser(bytes.NewReader(stream))); err != nil {
			t.Fatal(err)
		}
		restored.Index = one.Index
		same(t, one, replica, restored)
		if again := restored.Persist(t); !bytes.Equal(stream, again) {
			t.Fatal("a restored state has another stream")
		}
		grow(replica, restored)
		same(t, one, replica, restored)
	})
}

func same(t *rapid.T, servers ...*server) {
	first := servers[0]
	if err := first.Store.Snapshot().Check(); err != nil {
		t.Fatal(err)
	}
	for i, s := range servers[1:] {
		sn := s.Store.Snapshot()
		if err := sn.Check(); err != nil {
			t.Fatal(err)
		}
		if sn.Index() != first.Store.Snapshot().Index() || snapshot.Hash(sn) != snapshot.Hash(first.Store.Snapshot()) {
			t.Fatalf("server %d differs from the first", i+1)
		}
		if s.Modules.Len() != first.Modules.Len() {
			t.Fatalf("server %d has %d modules, the first %d", i+1, s.Modules.Len(), first.Modules.Len())
		}
	}
}

// Every entry is observed once, in order, with the state after it.
func TestFSM_ObservesEveryEntryInOrder(t *testing.T) {
	replicationtest.CheckProperty(t, 1, func(t *rapid.T) {
		s := newServer()
		h := &history{T: t}
		var logs []*raft.Log
		n := rapid.IntRange(1, 20).Draw(t, "entries")
		for i := range n {
			h.Snap = s.Store.Snapshot()
			logs = append(logs, &raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: codec.Encode(h.Entry())})
		}
		s.FSM.ApplyBatch(slices.Insert(logs, 0, &raft.Log{Type: raft.LogConfiguration}))
		if len(s.Observed) != n {
			t.Fatalf("%d entries, %d observed", n, len(s.Observed))
		}
		for i, a := range s.Observed {
			if a.Index != uint64(i+1) || a.Snap.Index() != a.Index || a.Entry == nil {
				t.Fatalf("entry %d was observed as %d with state %d", i+1, a.Index, a.Snap.Index())
			}
		}
	})
}

// anyState returns a server with rows in every table, and its stream.
func anyState(t *testing.T) (*server, []byte) {
	s := newServer()
	rapid.Check(t, func(t *rapid.T) {
		if s.Index > 400 {
			return
		}
		h := &history{T: t, Snap: s.Store.Snapshot(), Time: int64(s.Index)}
		for range 10 {
			h.Snap = s.Store.Snapshot()
			s.Apply(t, h.Entry())
		}
	})
	return s, s.Persist(t)
}

func TestRestore_RefusesDamageAndChangesNothing(t *testing.T) {
	_, stream := anyState(t)
	victim := newServer()
	victim.Do(t, &replication.Bootstrap{ClusterID: "mine", Version: 1})
	before := victim.Store.Snapshot()
	refuses := func(what string, damaged []byte) {
		t.Helper()
		err := victim.FSM.Restore(io.NopCloser(bytes.NewReader(damaged)))
		if _, ok := errors.AsType[*snapshot.Error](err); !ok {
			t.Fatalf("%s: %v", what, err)
		}
		if victim.Store.Snapshot() != before {
			t.Fatalf("%s: the state changed", what)
		}
	}
	step := max(1, len(stream)/300)
	for at := 0; at < len(stream); at += step {
		refuses(fmt.Sprintf("cut at %d of %d", at, len(stream)), stream[:at])
		flipped := bytes.Clone(stream)
		flipped[at] ^= 0x40
		refuses(fmt.Sprintf("byte %d of %d flipped", at, len(stream)), flipped)
	}
	refuses("empty", nil)
	refuses("trailing byte", append(bytes.Clone(stream), 0))
	refuses("text", []byte("some text that is longer than the magic"))
	newer := bytes.Clone(stream)
	newer[7]++
	refuses("newer format", newer)

	if err := victim.FSM.Restore(io.NopCloser(bytes.NewReader(stream))); err != nil {
		t.Fatalf("the undamaged stream: %v", err)
	}
}

// A module of a snapshot is not deleted while the snapshot is being written.
func TestSnapshot_KeepsModulesWhileItIsWritten(t *testing.T) {
	s := newServer()
	module := []byte("a module")
	v := replicationtest.PolicyVersion(module, "v1")
	s.Do(t, &replication.PutChunk{Digest: v.Digest, Data: module})
	if r := s.Do(t, &replication.LoadPolicy{Version: v}); r.Err != nil {
		t.Fatal(r.Err)
	}
	frozen, err := s.FSM.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Do(t, &replication.ChangePolicy{Name: v.Name, Op: replication.OpUnload, Version: v.ID}); r.Err != nil {
		t.Fatal(r.Err)
	}
	var out sink
	if err := frozen.Persist(&out); err != nil {
		t.Fatal(err)
	}
	if s.Modules.Len() != 1 {
		t.Error("the module was deleted while it was in use")
	}
	frozen.Release()
	if s.Modules.Len() != 0 {
		t.Error("the module was not deleted")
	}
	other := newServer()
	if err := other.FSM.Restore(io.NopCloser(&out.Buffer)); err != nil {
		t.Fatal(err)
	}
	if data, err := other.Modules.Get(v.Digest); err != nil || !bytes.Equal(data, module) {
		t.Errorf("the module is %q, %v", data, err)
	}
}

// upload writes a snapshot into the log, and returns its digest.
func upload(t *testing.T, s *server, stream []byte) string {
	digest := replication.SnapshotDigest(sha256.Sum256(stream))
	if r := s.Do(t, &replication.PutChunk{Digest: digest, Data: stream}); r.Err != nil {
		t.Fatal(r.Err)
	}
	return digest
}

func TestRestoreState_ReplacesStateAtLaterIndex(t *testing.T) {
	old := newServer()
	old.Do(t, &replication.Bootstrap{ClusterID: "a", Version: 1})
	stream := old.Persist(t)
	s := newServer()
	for range 5 {
		s.Do(t, &replication.SetVersion{Version: 1})
	}
	digest := upload(t, s, stream)
	watch := s.Store.Watch(state.TableNodes.All())
	defer watch.Stop()
	if r := s.Do(t, &replication.RestoreState{Digest: digest}); r.Err != nil || r.Index != 7 {
		t.Fatalf("result %+v", r)
	}
	if sn := s.Store.Snapshot(); sn.Index() != 7 || sn.Meta().ClusterID != "a" || sn.Upload(digest) != nil || snapshot.Hash(sn) != snapshot.Hash(old.Store.Snapshot()) {
		t.Errorf("state of %q at %d", sn.Meta().ClusterID, sn.Index())
	}
	select {
	case <-watch.C:
	default:
		t.Error("the restore did not notify a watch")
	}
	if a := s.Observed[len(s.Observed)-1]; a.Entry != nil || a.Snap != s.Store.Snapshot() {
		t.Errorf("observed %+v", a)
	}
}

// The state is unchanged unless the whole snapshot was uploaded.
func TestRestoreState_RefusesIncompleteUploads(t *testing.T) {
	stream := newServer().Persist(t)
	digest := replication.SnapshotDigest(sha256.Sum256(stream))
	s := newServer()
	s.Do(t, &replication.Bootstrap{ClusterID: "a", Version: 1})
	for _, c := range []struct {
		chunk []byte
		code  string
	}{{nil, replication.CodeNotFound}, {stream[:9], replication.CodeConflict}} {
		if c.chunk != nil {
			s.Do(t, &replication.PutChunk{Digest: digest, Data: c.chunk})
		}
		if r := s.Do(t, &replication.RestoreState{Digest: digest}); r.Err == nil || r.Err.Code != c.code || s.Store.Snapshot().Meta().ClusterID != "a" {
			t.Errorf("after %d bytes: %+v", len(c.chunk), r)
		}
	}
	other := upload(t, s, []byte("another snapshot"))
	if list := s.Store.Snapshot().Uploads(); len(list) != 1 || list[0].Digest != other {
		t.Errorf("the abandoned upload remains: %d uploads", len(list))
	}
}

// A restored server has the recent evictions of a rate, and allows as many as the
// server that wrote the snapshot.
func TestSnapshot_RetainsRecentEvictions(t *testing.T) {
	one := newServer()
	txn := one.Store.Begin(1)
	txn.BudgetWriter().Upsert(&model.Budget{
		Namespace: "default", Name: "slowly", Strict: true, MaxEvictions: &model.Rate{Number: 5, Window: time.Hour},
	})
	want := []model.EvictionCount{{At: 7, N: 2}, {At: 9, N: 1}}
	txn.BudgetWriter().RestoreEvictions(model.BudgetKey{Namespace: "default", Name: "slowly"}, want)
	txn.Commit()
	other := newServer()
	if err := other.FSM.Restore(io.NopCloser(bytes.NewReader(one.Persist(t)))); err != nil {
		t.Fatal(err)
	}
	sn := other.Store.Snapshot()
	if got := sn.RecentEvictions(0); !slices.Equal(got, want) || sn.DisruptionsAllowed(0, 10) != 2 {
		t.Errorf("recent evictions %v, %d allowed", got, sn.DisruptionsAllowed(0, 10))
	}
	if b := sn.Budgets()[0]; b.MaxEvictions == nil || *b.MaxEvictions != (model.Rate{Number: 5, Window: time.Hour}) {
		t.Errorf("budget %+v", b)
	}
}

// audited returns an entry with an audit record.
func audited(action string, c replication.Command) *replication.Entry {
	return &replication.Entry{Time: 3, Command: c, Audit: &model.AuditRecord{Action: action, AuditOrigin: model.AuditOrigin{Actor: "a", Address: "10.0.0.7"}}}
}

// A record is stored with its command or not at all, survives the snapshots of the log, and
// has the index and the time of the entry.
func TestAudit_IsStoredIfTheCommandTakesEffect(t *testing.T) {
	s := newServer()
	s.Do(t, &replication.Bootstrap{ClusterID: "a", Version: replication.Newest})
	s.Apply(t, audited("namespace.put", &replication.UpsertNamespace{Namespace: &model.Namespace{Name: "web", Weight: 1}}))
	if r := s.Apply(t, audited("token.delete", &replication.DeleteToken{Accessor: "missing"})); r.Err == nil {
		t.Fatal("a missing token was deleted")
	}
	repeated := audited("namespace.delete", &replication.DeleteNamespace{Name: "web"})
	repeated.Key = "k"
	s.Apply(t, repeated)
	s.Apply(t, repeated)
	list := s.Store.Snapshot().AuditRecords()
	if len(list) != 2 || list[0].Index != 2 || list[0].Time != 3 || list[0].Address != "10.0.0.7" || list[1].Action != "namespace.delete" || list[1].Index != 4 {
		t.Fatalf("%d records: %+v", len(list), list)
	}
	after := newServer()
	if err := after.FSM.Restore(io.NopCloser(bytes.NewReader(s.Persist(t)))); err != nil {
		t.Fatal(err)
	}
	if got := after.Store.Snapshot().AuditRecords(); len(got) != 2 || *got[1] != *list[1] {
		t.Errorf("%d records after a restart", len(got))
	}
	if err := after.Store.Snapshot().Check(); err != nil {
		t.Error(err)
	}
}

// A restore by an operator retains the records of this cluster, adds its own, and takes none
// from the snapshot: the snapshot may be of another cluster, or made up.
func TestRestoreState_KeepsTheAuditRecords(t *testing.T) {
	other := newServer()
	other.Do(t, &replication.Bootstrap{ClusterID: "b", Version: replication.Newest})
	for range 20 {
		other.Apply(t, audited("scheduler.config", &replication.SetConfig{Config: &model.SchedulerConfig{}}))
	}
	s := newServer()
	s.Do(t, &replication.Bootstrap{ClusterID: "a", Version: replication.Newest})
	s.Apply(t, audited("namespace.put", &replication.UpsertNamespace{Namespace: &model.Namespace{Name: "web", Weight: 1}}))
	digest := upload(t, s, other.Persist(t))
	r := s.Apply(t, audited("snapshot.restore", &replication.RestoreState{Digest: digest}))
	list := s.Store.Snapshot().AuditRecords()
	if r.Err != nil || len(list) != 2 || list[0].Action != "namespace.put" || list[0].Index != 2 || list[1].Action != "snapshot.restore" || list[1].Index != r.Index {
		t.Fatalf("%+v, records %+v", r, list)
	}
	s.Apply(t, audited("scheduler.config", &replication.SetConfig{Config: &model.SchedulerConfig{}}))
	if list = s.Store.Snapshot().AuditRecords(); len(list) != 3 || list[2].Index != r.Index+1 {
		t.Errorf("the records after a later change: %+v", list)
	}
}
