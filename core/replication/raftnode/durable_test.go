package raftnode_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/doctor"
)

// durable is a server with a data directory.
type durable struct {
	id, dir   string
	disk      *storage.Store
	transport *raft.InmemTransport
	store     *state.Store
	node      *raftnode.Node
}

func (d *durable) start(t *testing.T) {
	t.Helper()
	var err error
	if d.disk, err = storage.Open(storage.Config{Dir: d.dir}); err != nil {
		t.Fatal(err)
	}
	_, d.transport = raft.NewInmemTransport(raft.ServerAddress(d.id))
	d.store = state.New()
	d.node, err = raftnode.Open(raftnode.Config{
		ServerID: d.id, Log: d.disk.Log(), Stable: d.disk.Log(), Snapshots: d.disk.Snapshots(), Modules: d.disk.Blobs(),
		Transport: replicationtest.SlowTransport{Transport: replicationtest.Transport{InmemTransport: d.transport}}, Store: d.store, Timing: raftnode.Timing{TrailingLogs: 5},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (d *durable) stop(t *testing.T) {
	t.Helper()
	if err := d.node.Close(); err != nil {
		t.Error(err)
	}
	if err := d.disk.Close(); err != nil {
		t.Error(err)
	}
}

// lead waits until the server leads and has applied its log.
func (d *durable) lead(t *testing.T) {
	t.Helper()
	<-d.node.Leadership()
	if err := d.node.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Acknowledged entries survive a restart from disk: from the log alone, and from a
// snapshot with the entries after it. So do policy modules.
func TestNode_RestartsFromItsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &durable{id: "s", dir: filepath.Join(t.TempDir(), "data")}
		d.start(t)
		defer func() { d.stop(t) }()
		if err := d.node.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		do := func(c replication.Command) {
			t.Helper()
			r, err := d.node.Apply(t.Context(), &replication.Entry{Command: c})
			if err != nil || r.Err != nil {
				t.Fatalf("%T: %v, %+v", c, err, r)
			}
		}
		module := make([]byte, replication.MaxChunk+1000)
		v := replicationtest.PolicyVersion(module, "v1")
		d.lead(t)
		for round := range 3 {
			if round == 0 {
				do(&replication.PutChunk{Digest: v.Digest, Data: module[:replication.MaxChunk]})
				do(&replication.PutChunk{Digest: v.Digest, Offset: replication.MaxChunk, Data: module[replication.MaxChunk:]})
				do(&replication.LoadPolicy{Version: v})
			}
			for n := range 20 {
				do(&replication.RegisterJob{Job: replicationtest.NumberedJob(fmt.Sprint("job", round), n)})
			}
			if round == 1 {
				if err := d.node.TakeSnapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
				do(&replication.SetVersion{Version: replication.Newest})
			}
			before := d.store.Snapshot()
			d.stop(t)
			d.start(t)
			d.lead(t)
			after := d.store.Snapshot()
			if after.Index() != before.Index() || snapshot.Hash(after) != snapshot.Hash(before) {
				t.Fatalf("round %d: state at %d before, at %d after", round, before.Index(), after.Index())
			}
		}
		if got, err := d.disk.Blobs().Get(v.Digest); err != nil || len(got) != len(module) {
			t.Errorf("module of %d bytes, %v", len(got), err)
		}
		if j := d.store.Snapshot().Job(model.JobKey{Namespace: "default", ID: "job2"}); j == nil || j.Version != 19 {
			t.Errorf("job %+v", j)
		}
	})
}

// The state of a stopped server is computed from its directory: from a snapshot and
// the entries after it, or entry by entry.
func TestReplay_YieldsTheStateOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &durable{id: "s", dir: filepath.Join(t.TempDir(), "data")}
		d.start(t)
		if err := d.node.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		d.lead(t)
		do := func(c replication.Command) *state.Snapshot {
			t.Helper()
			if r, err := d.node.Apply(t.Context(), &replication.Entry{Command: c}); err != nil || r.Err != nil {
				t.Fatalf("%T: %v, %+v", c, err, r)
			}
			return d.store.Snapshot()
		}
		module := []byte("module")
		v := replicationtest.PolicyVersion(module, "v1")
		do(&replication.PutChunk{Digest: v.Digest, Data: module})
		do(&replication.LoadPolicy{Version: v})
		for n := range 20 {
			do(&replication.RegisterJob{Job: replicationtest.NumberedJob("a", n)})
		}
		early := do(&replication.RegisterJob{Job: replicationtest.NumberedJob("b", 0)})
		if err := d.node.TakeSnapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			do(&replication.RegisterJob{Job: replicationtest.NumberedJob("b", n)})
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
				observed := early.Index()
				r := &raftnode.Replay{Snapshot: begin, From: s.Snapshots()[0].Index + 1, To: until, Entry: s.Entry, Observe: func(a *replication.Applied) error {
					if a.Index <= observed || a.Snap.Index() != a.Index {
						t.Errorf("entry %d was observed after %d", a.Index, observed)
					}
					observed = a.Index
					return nil
				}}
				got, err := r.Run(t.Context())
				if err := errors.Join(err, begin.Close()); err != nil {
					return err
				}
				if got.Index() != want.Index() || snapshot.Hash(got) != snapshot.Hash(want) || observed != want.Index() {
					t.Errorf("the state is at index %d, want %d; observed up to %d", got.Index(), want.Index(), observed)
				}
			}
			stop := errors.New("enough")
			r := &raftnode.Replay{From: first, To: last, Entry: s.Entry, Observe: func(*replication.Applied) error { return stop }}
			if _, err := r.Run(t.Context()); !errors.Is(err, stop) {
				t.Errorf("want the observer's error, got %v", err)
			}
			if err := s.Entry(first-1, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
				t.Errorf("a deleted entry: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
