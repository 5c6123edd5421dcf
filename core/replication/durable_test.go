package replication

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage"
)

// durable is a server with a directory.
type durable struct {
	id, dir string
	disk    *storage.Store
	trans   *raft.InmemTransport
	store   *state.Store
	node    *Node
}

func (d *durable) start(t *testing.T) {
	t.Helper()
	var err error
	if d.disk, err = storage.Open(storage.Config{Dir: d.dir}); err != nil {
		t.Fatal(err)
	}
	_, d.trans = raft.NewInmemTransport(raft.ServerAddress(d.id))
	d.store = state.New()
	d.node, err = Open(Config{
		ServerID: d.id, Log: d.disk.Log(), Stable: d.disk.Log(), Snapshots: d.disk.Snapshots(), Modules: d.disk.Blobs(),
		Transport: unpiped{d.trans}, Store: d.store, Timing: Timing{TrailingLogs: 5},
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

// What was acknowledged is there after a restart from the disk, whether from the
// log alone or from a snapshot and what followed it; policy modules too.
func TestNode_RestartsFromItsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &durable{id: "s", dir: filepath.Join(t.TempDir(), "data")}
		d.start(t)
		defer func() { d.stop(t) }()
		if err := d.node.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		do := func(c Command) {
			t.Helper()
			r, err := d.node.Apply(t.Context(), &Entry{Command: c})
			if err != nil || r.Err != nil {
				t.Fatalf("%T: %v, %+v", c, err, r)
			}
		}
		module := make([]byte, MaxChunk+1000)
		v := versionWith(module, "v1")
		d.lead(t)
		for round := range 3 {
			if round == 0 {
				do(&PutChunk{Digest: v.Digest, Data: module[:MaxChunk]})
				do(&PutChunk{Digest: v.Digest, Offset: MaxChunk, Data: module[MaxChunk:]})
				do(&LoadPolicy{v})
			}
			for n := range 20 {
				do(&RegisterJob{Job: countedJob(fmt.Sprint("job", round), n)})
			}
			if round == 1 {
				if err := d.node.TakeSnapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
				do(&SetVersion{Newest})
			}
			before := d.store.Snapshot()
			d.stop(t)
			d.start(t)
			d.lead(t)
			after := d.store.Snapshot()
			if after.Index() != before.Index() || Hash(after) != Hash(before) {
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
