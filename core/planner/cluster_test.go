package planner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// cluster is a store with several writers, and its plans.
type cluster struct {
	t     testing.TB
	store *state.Store
	mu    sync.Mutex // one writer chooses the next index at a time
}

// newCluster returns a cluster with nodes n0.. of 1000 cpu and memory.
func newCluster(t testing.TB, nodes int, jobs ...*model.Job) *cluster {
	c := &cluster{t: t, store: state.New()}
	c.write(func(txn *state.Txn) {
		for i := range nodes {
			if err := txn.NodeWriter().Upsert(coretest.Node(fmt.Sprintf("n%d", i), 1000, 1000, 0)); err != nil {
				t.Fatal(err)
			}
		}
		for _, j := range jobs {
			if err := txn.JobWriter().Upsert(j); err != nil {
				t.Fatal(err)
			}
		}
	})
	return c
}

func (c *cluster) write(f func(*state.Txn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	txn := c.store.Begin(c.store.Snapshot().Index() + 1)
	defer txn.Abort()
	f(txn)
	txn.Commit()
}

// Commit writes a batch concurrently with other writers.
func (c *cluster) Commit(ctx context.Context, b *apply.Batch) (planner.CommitResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return planner.DirectCommitter{Store: c.store}.Commit(ctx, b)
}

// place returns a plan of one group that places one allocation and evicts others.
func (c *cluster) place(id, job string, index int, node string, victims ...string) *model.Plan {
	snap := c.store.Snapshot()
	j := snap.Job(key(job))
	a := &model.Allocation{ID: id, Job: j, Group: j.Groups[0], Index: index, NodeID: node, Preempted: victims}
	g := model.CommitGroup{Placements: []*model.Allocation{a}}
	for _, v := range victims {
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: v, By: id})
	}
	return &model.Plan{
		EvalID: "eval-" + id, Job: j.Key(), Priority: j.Priority, SnapshotIndex: snap.Index(),
		Groups: []model.CommitGroup{g},
	}
}

func (c *cluster) run(id, job string, index int, node string) {
	c.write(func(txn *state.Txn) {
		txn.AllocWriter().Upsert(coretest.Running(id, txn.Job(key(job)), 0, index, node))
	})
}

// start runs an applier until stop is called.
func (c *cluster) start(committer planner.Committer) (a *planner.Applier, stop func()) {
	a = planner.NewApplier(planner.Config{Store: c.store, Committer: committer})
	a.Queue().SetEnabled(true)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			c.t.Errorf("Run returned %v", err)
		}
	}
}

// enqueue submits a plan.
func (c *cluster) enqueue(a *planner.Applier, plan *model.Plan) *planner.PendingPlan {
	c.t.Helper()
	p, err := a.Queue().Enqueue(plan)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// gate is a committer that writes on a signal; an error makes the commit fail.
type gate struct {
	c       *cluster
	pass    chan error
	batches []*apply.Batch // read when nothing is in flight
	before  func()         // called once the gate is open
}

func newGate(c *cluster) *gate { return &gate{c: c, pass: make(chan error)} }

func (g *gate) Commit(ctx context.Context, b *apply.Batch) (planner.CommitResult, error) {
	select {
	case err := <-g.pass:
		if err != nil {
			return planner.CommitResult{}, err
		}
	case <-ctx.Done():
		return planner.CommitResult{}, ctx.Err()
	}
	if g.before != nil {
		g.before()
	}
	g.batches = append(g.batches, b)
	return g.c.Commit(ctx, b)
}

// overfull returns a violation of capacity, which no state may ever have.
func overfull(snap *state.Snapshot) error {
	for pos := range snap.NodeOrder() {
		n := snap.NodeAt(int32(pos))
		room := snap.Chunk(pos / state.ChunkSize).FreeCapacity(pos % state.ChunkSize)
		for d := range snap.Dims().Len() {
			if room.Free[d*room.Stride] < 0 {
				return fmt.Errorf("node %s is over capacity in %s by %d", n.ID, snap.Dims().Name(d), -room.Free[d*room.Stride])
			}
		}
		for i := 1; i < len(room.Ports); i++ {
			if room.Ports[i] == room.Ports[i-1] {
				return fmt.Errorf("node %s gave port %d away twice", n.ID, room.Ports[i])
			}
		}
		for i, free := range room.Devices {
			if free < 0 {
				return fmt.Errorf("node %s is over capacity in %s", n.ID, n.Devices[i].ID)
			}
		}
	}
	type instance struct {
		job   model.JobKey
		group string
		index int
	}
	seen := map[instance]string{}
	for a := range snap.Allocs() {
		if !a.Live() {
			continue
		}
		k := instance{a.Job.Key(), a.Group.Name, a.Index}
		if other := seen[k]; other != "" {
			return fmt.Errorf("%s and %s are the same instance", a.ID, other)
		}
		seen[k] = a.ID
	}
	return nil
}
