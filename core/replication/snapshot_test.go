package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// sink is where a snapshot goes in tests.
type sink struct {
	bytes.Buffer
	cancelled bool
}

func (*sink) ID() string      { return "test" }
func (*sink) Close() error    { return nil }
func (s *sink) Cancel() error { s.cancelled = true; return nil }

func (s *server) persist(t rapid.TB) []byte {
	frozen, err := s.fsm.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Release()
	var out sink
	if err := frozen.Persist(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A server that restores a snapshot has the state of the one that wrote it, and
// does the same with what follows.
func TestSnapshot_RestoresTheStateAndWhatFollows(t *testing.T) {
	checkProperty(t, 1, func(t *rapid.T) {
		one := newServer()
		h := &history{t: t, snap: one.store.Snapshot()}
		grow := func(others ...*server) {
			for range rapid.IntRange(1, 25).Draw(t, "entries") {
				h.snap = one.store.Snapshot()
				e := h.entry()
				result := one.apply(t, e)
				for _, other := range others {
					if diff := cmp.Diff(result, other.apply(t, e), equal); diff != "" {
						t.Fatalf("%T: servers answer differently:\n%s", e.Command, diff)
					}
				}
			}
		}
		replica := newServer()
		grow(replica)
		restored := newServer()
		stream := one.persist(t)
		if err := restored.fsm.Restore(io.NopCloser(bytes.NewReader(stream))); err != nil {
			t.Fatal(err)
		}
		restored.index = one.index
		same(t, one, replica, restored)
		if again := restored.persist(t); !bytes.Equal(stream, again) {
			t.Fatal("a restored state is written differently")
		}
		grow(replica, restored)
		same(t, one, replica, restored)
	})
}

func same(t *rapid.T, servers ...*server) {
	first := servers[0]
	if err := first.store.Snapshot().Check(); err != nil {
		t.Fatal(err)
	}
	for i, s := range servers[1:] {
		sn := s.store.Snapshot()
		if err := sn.Check(); err != nil {
			t.Fatal(err)
		}
		if sn.Index() != first.store.Snapshot().Index() || Hash(sn) != Hash(first.store.Snapshot()) {
			t.Fatalf("server %d differs from the first", i+1)
		}
		if len(s.modules.whole) != len(first.modules.whole) {
			t.Fatalf("server %d has %d modules, the first %d", i+1, len(s.modules.whole), len(first.modules.whole))
		}
	}
}

// What is observed is every entry, once, in order, with the state that it left.
func TestFSM_ObservesEveryEntryInOrder(t *testing.T) {
	checkProperty(t, 1, func(t *rapid.T) {
		s := newServer()
		h := &history{t: t}
		var logs []*raft.Log
		n := rapid.IntRange(1, 20).Draw(t, "entries")
		for i := range n {
			h.snap = s.store.Snapshot()
			logs = append(logs, &raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: Encode(h.entry())})
		}
		s.fsm.ApplyBatch(slices.Insert(logs, 0, &raft.Log{Type: raft.LogConfiguration}))
		if len(s.observed) != n {
			t.Fatalf("%d entries, %d observed", n, len(s.observed))
		}
		for i, a := range s.observed {
			if a.Index != uint64(i+1) || a.Snap.Index() != a.Index || a.Entry == nil {
				t.Fatalf("entry %d is observed as %d with state %d", i+1, a.Index, a.Snap.Index())
			}
		}
	})
}

// some is a state with something of everything.
func some(t *testing.T) (*server, []byte) {
	s := newServer()
	rapid.Check(t, func(t *rapid.T) {
		if s.index > 400 {
			return
		}
		h := &history{t: t, snap: s.store.Snapshot(), time: int64(s.index)}
		for range 10 {
			h.snap = s.store.Snapshot()
			s.apply(t, h.entry())
		}
	})
	return s, s.persist(t)
}

func TestSnapshot_DamageIsAnErrorAndChangesNothing(t *testing.T) {
	_, stream := some(t)
	victim := newServer()
	victim.do(t, &Bootstrap{ClusterID: "mine", Version: 1})
	before := victim.store.Snapshot()
	refuses := func(what string, damaged []byte) {
		t.Helper()
		err := victim.fsm.Restore(io.NopCloser(bytes.NewReader(damaged)))
		if _, ok := errors.AsType[*SnapshotError](err); !ok {
			t.Fatalf("%s: %v", what, err)
		}
		if victim.store.Snapshot() != before {
			t.Fatalf("%s: the state is another", what)
		}
	}
	step := max(1, len(stream)/300)
	for at := 0; at < len(stream); at += step {
		refuses(fmt.Sprintf("cut at %d of %d", at, len(stream)), stream[:at])
		flipped := bytes.Clone(stream)
		flipped[at] ^= 0x40
		refuses(fmt.Sprintf("byte %d of %d flipped", at, len(stream)), flipped)
	}
	refuses("nothing", nil)
	refuses("something behind it", append(bytes.Clone(stream), 0))
	refuses("text", []byte("this is no snapshot, however long it is"))
	newer := bytes.Clone(stream)
	newer[7]++
	refuses("a newer format", newer)

	if err := victim.fsm.Restore(io.NopCloser(bytes.NewReader(stream))); err != nil {
		t.Fatalf("the stream itself: %v", err)
	}
}

// While a snapshot is written, a module that it holds stays.
func TestSnapshot_KeepsModulesWhileItIsWritten(t *testing.T) {
	s := newServer()
	module := []byte("a module")
	v := versionWith(module, "v1")
	s.do(t, &PutChunk{Digest: v.Digest, Data: module})
	if r := s.do(t, &LoadPolicy{v}); r.Err != nil {
		t.Fatal(r.Err)
	}
	frozen, err := s.fsm.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if r := s.do(t, &ChangePolicy{Name: v.Name, Op: OpUnload, Version: v.ID}); r.Err != nil {
		t.Fatal(r.Err)
	}
	var out sink
	if err := frozen.Persist(&out); err != nil {
		t.Fatal(err)
	}
	if len(s.modules.whole) != 1 {
		t.Error("the module was deleted while it was read")
	}
	frozen.Release()
	if len(s.modules.whole) != 0 {
		t.Error("the module was not deleted")
	}
	other := newServer()
	if err := other.fsm.Restore(io.NopCloser(&out.Buffer)); err != nil {
		t.Fatal(err)
	}
	if data, err := other.modules.Get(v.Digest); err != nil || !bytes.Equal(data, module) {
		t.Errorf("the module is %q, %v", data, err)
	}
}

func TestSnapshot_OlderStateDoesNotTurnTheIndexBack(t *testing.T) {
	old := newServer()
	old.do(t, &Bootstrap{ClusterID: "a", Version: 1})
	stream := old.persist(t)
	s := newServer()
	for range 5 {
		s.do(t, &SetVersion{Version: 1})
	}
	watch := s.store.Watch(state.TableNodes.All())
	defer watch.Stop()
	if err := s.fsm.Restore(io.NopCloser(bytes.NewReader(stream))); err != nil {
		t.Fatal(err)
	}
	if sn := s.store.Snapshot(); sn.Index() != 5 || sn.Meta().ClusterID != "a" {
		t.Errorf("state of %q at %d", sn.Meta().ClusterID, sn.Index())
	}
	select {
	case <-watch.C:
	default:
		t.Error("a restore wakes every watch")
	}
	if a := s.observed[len(s.observed)-1]; a.Entry != nil || a.Snap != s.store.Snapshot() {
		t.Errorf("observed %+v", a)
	}
}

// A snapshot that was under way for long does not take the state back, and what Raft hands
// over again after it is not done twice.
func TestRestore_OfAnOlderSnapshotChangesNothing(t *testing.T) {
	snaps := placed{raft.NewInmemSnapshotStore()}
	f := newFSM(&Config{Store: state.New()}, discardLog())
	entries := func(from, to uint64) (list []*raft.Log) {
		for i := from; i <= to; i++ {
			list = append(list, &raft.Log{Index: i, Data: Encode(&Entry{Command: &RegisterJob{Job: countedJob("j", int(i))}})})
		}
		return list
	}
	f.ApplyBatch(entries(1, 5))
	frozen, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	_, trans := raft.NewInmemTransport("s")
	sink, err := snaps.Create(1, 5, 1, raft.Configuration{}, 0, trans)
	if err != nil {
		t.Fatal(err)
	}
	if err := frozen.Persist(sink); err != nil {
		t.Fatal(err)
	}
	f.ApplyBatch(entries(6, 8))
	before := f.store.Snapshot()
	_, in, err := snaps.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Restore(in); err != nil {
		t.Fatal(err)
	}
	f.ApplyBatch(entries(6, 8))
	if now := f.store.Snapshot(); now.Index() != 8 || Hash(now) != Hash(before) {
		t.Errorf("the state is at %d, and was at %d", now.Index(), before.Index())
	}
	f.ApplyBatch(entries(9, 9))
	if j := f.store.Snapshot().Job(model.JobKey{Namespace: "default", ID: "j"}); j.Version != 8 {
		t.Errorf("the job was changed %d times, want 8", j.Version)
	}
}
