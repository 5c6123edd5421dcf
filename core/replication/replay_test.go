package replication

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage/doctor"
)

// The state of a stopped server is worked out again from its directory: from the
// snapshot and what followed it, or entry by entry.
func TestReplay_GivesTheStateThatTheServerHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &durable{id: "s", dir: filepath.Join(t.TempDir(), "data")}
		d.start(t)
		if err := d.node.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		d.lead(t)
		do := func(c Command) *state.Snapshot {
			t.Helper()
			if r, err := d.node.Apply(t.Context(), &Entry{Command: c}); err != nil || r.Err != nil {
				t.Fatalf("%T: %v, %+v", c, err, r)
			}
			return d.store.Snapshot()
		}
		module := []byte("module")
		v := versionWith(module, "v1")
		do(&PutChunk{Digest: v.Digest, Data: module})
		do(&LoadPolicy{v})
		for n := range 20 {
			do(&RegisterJob{Job: countedJob("a", n)})
		}
		early := do(&RegisterJob{Job: countedJob("b", 0)})
		if err := d.node.TakeSnapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			do(&RegisterJob{Job: countedJob("b", n)})
		}
		late := d.store.Snapshot()
		d.stop(t)
		err := doctor.Inspect(d.dir, func(s *doctor.Offline) error {
			first, last, commit := s.Range()
			if first < 2 || last < commit || commit == 0 || len(s.Snapshots()) != 1 {
				t.Fatalf("entries %d to %d, committed to %d, %d snapshots", first, last, commit, len(s.Snapshots()))
			}
			for until, want := range map[uint64]*state.Snapshot{early.Index(): early, last: late} {
				begin, err := s.Snapshots()[0].Open()
				if err != nil {
					return err
				}
				told := early.Index()
				r := &Replay{Snapshot: begin, From: s.Snapshots()[0].Index + 1, To: until, Entry: s.Entry, Observe: func(a *Applied) error {
					if a.Index <= told || a.Snap.Index() != a.Index {
						t.Errorf("told of entry %d after %d", a.Index, told)
					}
					told = a.Index
					return nil
				}}
				got, err := r.Run(t.Context())
				if err := errors.Join(err, begin.Close()); err != nil {
					return err
				}
				if got.Index() != want.Index() || Hash(got) != Hash(want) || told != want.Index() {
					t.Errorf("the state is at %d, want that at %d; told up to %d", got.Index(), want.Index(), told)
				}
			}
			stop := errors.New("enough")
			r := &Replay{From: first, To: last, Entry: s.Entry, Observe: func(*Applied) error { return stop }}
			if _, err := r.Run(t.Context()); !errors.Is(err, stop) {
				t.Errorf("the observer's error: %v", err)
			}
			if err := s.Entry(first-1, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
				t.Errorf("an entry that was deleted: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
