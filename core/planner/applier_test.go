package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func result(t *testing.T, p *planner.PendingPlan) *model.PlanResult {
	t.Helper()
	<-p.Done()
	r, err := p.Result()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func waits(p *planner.PendingPlan) bool {
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

func TestApplier_ChecksTheNextBatchWhileTheLastIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, coretest.Job("web").Ask(600, 100, 0).Count(9).Obj())
		gate := newGate(c)
		a, stop := c.start(gate)
		defer stop()

		first := c.enqueue(a, c.place("w0", "web", 0, "n0"))
		synctest.Wait()
		if s := a.Stats(); s.Nodes != 1 {
			t.Fatalf("checked %d nodes", s.Nodes)
		}
		clash := c.enqueue(a, c.place("w1", "web", 1, "n0"))
		other := c.enqueue(a, c.place("w2", "web", 2, "n1"))
		synctest.Wait()
		if s := a.Stats(); s.Nodes != 3 || s.Depth != 0 {
			t.Errorf("while a commit is in flight, %d nodes were checked, depth %d", s.Nodes, s.Depth)
		}
		if !waits(first) || !waits(clash) || !waits(other) {
			t.Error("answered before the commit")
		}

		gate.pass <- nil
		if r := result(t, first); !r.FullyCommitted() || r.Index != 2 {
			t.Errorf("first: %+v", r)
		}
		synctest.Wait()
		if !waits(clash) {
			t.Error("a rejection is answered with its batch")
		}
		gate.pass <- nil
		if r := result(t, other); !r.FullyCommitted() || r.Index != 3 {
			t.Errorf("other: %+v", r)
		}
		if r := result(t, clash); r.FullyCommitted() || r.RefreshIndex < 2 {
			t.Errorf("clash: %+v", r)
		}
		if len(gate.batches) != 2 {
			t.Errorf("%d batches", len(gate.batches))
		}
	})
}

func TestApplier_ManyPlansShareAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, coretest.Job("web").Ask(1, 1, 0).Count(200).Obj())
		gate := newGate(c)
		a, stop := c.start(gate)
		defer stop()
		pending := []*planner.PendingPlan{c.enqueue(a, c.place("w0", "web", 0, "n0"))}
		synctest.Wait()
		for i := 1; i < 200; i++ {
			pending = append(pending, c.enqueue(a, c.place(fmt.Sprintf("w%d", i), "web", i, "n0")))
		}
		for range 3 { // 1, 128 (the limit), 71
			synctest.Wait()
			gate.pass <- nil
		}
		for _, p := range pending {
			if r := result(t, p); !r.FullyCommitted() {
				t.Errorf("%+v", r)
			}
		}
		if s := a.Stats(); s.Batches != 3 || s.BatchPlans != 200 || s.LargestBatch != 128 {
			t.Errorf("%+v", s)
		}
	})
}

// A rejection that depends on a failed commit is void.
func TestApplier_ReverifiesPlansAfterAFailedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, coretest.Job("web").Ask(600, 100, 0).Count(9).Obj(), coretest.Job("low").Priority(1).Ask(600, 1, 0).Obj())
		c.run("a", "low", 0, "n0")
		gate := newGate(c)
		a, stop := c.start(gate)
		defer stop()

		first := c.enqueue(a, c.place("w0", "web", 0, "n0", "a"))
		synctest.Wait()
		clash := c.enqueue(a, c.place("w1", "web", 1, "n0", "a")) // on the branch: no room
		synctest.Wait()

		gate.pass <- errDisk
		<-first.Done()
		if _, err := first.Result(); !errors.Is(err, errDisk) {
			t.Errorf("first: %v", err)
		}
		synctest.Wait()
		gate.pass <- nil
		if r := result(t, clash); !r.FullyCommitted() {
			t.Errorf("rejected because of a commit that failed: %+v", r)
		}
		if by := c.store.Snapshot().Alloc("a").PreemptedBy; by != "w1" {
			t.Errorf("the victim made room for %q", by)
		}
		if s := a.Stats(); s.Failures != 1 || s.Reverified != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// Capacity that a failed commit would have freed is not used.
func TestApplier_FailedCommitFreesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, coretest.Job("web").Ask(100, 1, 0).Count(9).Obj(), coretest.Job("low").Priority(1).Ask(1000, 1, 0).Obj())
		c.run("a", "low", 0, "n0")
		gate := newGate(c)
		a, stop := c.start(gate)
		defer stop()
		c.enqueue(a, c.place("w0", "web", 0, "n0", "a"))
		synctest.Wait()
		second := c.enqueue(a, c.place("w1", "web", 1, "n0")) // holds on the branch only
		synctest.Wait()
		gate.pass <- errDisk
		if r := result(t, second); r.FullyCommitted() {
			t.Errorf("committed on room that was never freed: %+v", r)
		}
		if err := overfull(c.store.Snapshot()); err != nil {
			t.Error(err)
		}
	})
}

// The node of one member of a gang becomes ineligible while the batch is being
// written. Groups that rely on capacity that the gang was to free must not be
// written either: a plan of the same batch, and one that was verified on top of it.
func TestApplier_NodeBecomesIneligibleDuringTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3,
			coretest.Job("gang").Priority(90).Ask(500, 1, 0).Count(2).Obj(),
			coretest.Job("web").Ask(500, 1, 0).Count(9).Obj(), coretest.Job("low").Priority(1).Ask(1000, 1, 0).Obj())
		c.run("a", "low", 0, "n0")
		gate := newGate(c)
		a, stop := c.start(gate)
		defer stop()

		first := c.enqueue(a, c.place("w9", "web", 9, "n2")) // keeps the log busy
		synctest.Wait()
		plan := c.place("g0", "gang", 0, "n0", "a")
		plan.Groups[0].Placements = append(plan.Groups[0].Placements, c.place("g1", "gang", 1, "n1").Groups[0].Placements...)
		gang := c.enqueue(a, plan)
		same := c.enqueue(a, c.place("w0", "web", 0, "n0"))
		synctest.Wait()
		gate.pass <- nil
		result(t, first)
		synctest.Wait()
		behind := c.enqueue(a, c.place("w1", "web", 1, "n2", "none"))
		late := c.enqueue(a, c.place("w2", "web", 0, "n0"))
		synctest.Wait()

		gate.before = func() {
			gate.before = nil
			c.write(func(txn *state.Txn) {
				down := model.NodeDown
				apply.NodeStatus(txn, 0, []string{"n1"}, apply.NodeChange{Status: &down})
			})
		}
		gate.pass <- nil
		for name, p := range map[string]*planner.PendingPlan{"gang": gang, "same": same} {
			if r := result(t, p); len(r.Committed) != 0 || len(r.Rejected) != 1 || r.RefreshIndex == 0 || r.Index != 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		synctest.Wait()
		gate.pass <- nil
		if r := result(t, behind); !r.FullyCommitted() {
			t.Errorf("behind: %+v", r)
		}
		if r := result(t, late); r.FullyCommitted() {
			t.Errorf("late stands on room that was never freed: %+v", r)
		}
		snap := c.store.Snapshot()
		if !snap.Alloc("a").Live() || snap.Alloc("g0") != nil || snap.Alloc("w0") != nil {
			t.Error("half a gang was written, or a group that relies on it")
		}
		if err := overfull(snap); err != nil {
			t.Error(err)
		}
	})
}

// hashicorp/nomad#28249, #28444, #28452: with plans in flight, a plan made on a
// state newer than the applier's snapshot failed, since its objects were unknown
// there.
func TestApplier_28444_PlanOfAJobNewerThanTheBatchInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, coretest.Job("web").Ask(100, 100, 0).Count(9).Obj())
		gate := newGate(c)
		a, stop := c.start(gate)
		defer stop()
		first := c.enqueue(a, c.place("w0", "web", 0, "n0"))
		synctest.Wait()
		coretest.PutJobs(c.store, coretest.Job("new").Ask(100, 100, 0).Obj())
		newer := c.enqueue(a, c.place("x0", "new", 0, "n0"))
		behind := c.enqueue(a, c.place("w1", "web", 1, "n0"))
		synctest.Wait()
		if !waits(newer) {
			t.Error("answered on a state that does not know its job")
		}
		gate.pass <- nil
		synctest.Wait()
		gate.pass <- nil
		for name, p := range map[string]*planner.PendingPlan{"first": first, "newer": newer, "behind": behind} {
			if r := result(t, p); !r.FullyCommitted() {
				t.Errorf("%s: %+v", name, r)
			}
		}
	})
}

func TestApplier_WaitsForThePlansStateUntilADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, coretest.Job("web").Ask(100, 100, 0).Count(9).Obj())
		a, stop := c.start(c)
		defer stop()
		early := c.place("w0", "web", 0, "n0")
		early.SnapshotIndex++
		waiting := c.enqueue(a, early)
		synctest.Wait()
		if !waits(waiting) {
			t.Error("answered on an older state than the plan's")
		}
		c.write(func(*state.Txn) {})
		if r := result(t, waiting); !r.FullyCommitted() {
			t.Errorf("%+v", r)
		}

		never := c.place("w1", "web", 1, "n0")
		never.SnapshotIndex += 1000
		began := time.Now()
		p := c.enqueue(a, never)
		<-p.Done()
		if _, err := p.Result(); !errors.Is(err, planner.ErrStateBehind) {
			t.Errorf("answered with %v", err)
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestApplier_StopAnswersEveryPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, coretest.Job("web").Ask(100, 100, 0).Count(9).Obj())
		a, stop := c.start(newGate(c))
		flying := c.enqueue(a, c.place("w0", "web", 0, "n0"))
		synctest.Wait()
		checked := c.enqueue(a, c.place("w1", "web", 1, "n0"))
		synctest.Wait()
		c.write(func(*state.Txn) {})
		aside := c.enqueue(a, c.place("w2", "web", 2, "n0"))
		queued := c.enqueue(a, c.place("w3", "web", 3, "n0"))
		synctest.Wait()
		stop()
		if _, err := flying.Result(); !errors.Is(err, context.Canceled) {
			t.Errorf("in flight: %v", err)
		}
		for name, p := range map[string]*planner.PendingPlan{"checked": checked, "aside": aside} {
			if _, err := p.Result(); !errors.Is(err, planner.ErrStopped) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !waits(queued) {
			t.Error("plans that were not taken must stay queued")
		}
		a.Queue().SetEnabled(false)
		<-queued.Done()
	})
}

func TestApplier_ApplyOneNeedsNoGoroutine(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, coretest.Job("web").Ask(600, 100, 0).Count(9).Obj())
	a := planner.NewApplier(planner.Config{Store: c.store, Committer: planner.DirectCommitter{Store: c.store}})
	r, err := a.ApplyOne(c.place("w0", "web", 0, "n0"))
	if err != nil || !r.FullyCommitted() || r.Index != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = a.ApplyOne(c.place("w1", "web", 1, "n0"))
	if err != nil || r.FullyCommitted() || r.Index != 0 || r.RefreshIndex != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	var malformed *planner.PlanError
	if _, err := a.ApplyOne(nil); !errors.As(err, &malformed) {
		t.Errorf("nil: %v", err)
	}
	future := c.place("w2", "web", 2, "n0")
	future.SnapshotIndex = 99
	if _, err := a.ApplyOne(future); !errors.Is(err, planner.ErrStateBehind) {
		t.Errorf("from the future: %v", err)
	}
	failing := planner.NewApplier(planner.Config{Store: c.store, Committer: &flaky{cluster: c, every: 1}})
	var commit *planner.CommitError
	if _, err := failing.ApplyOne(c.place("w3", "web", 3, "n0", "w0")); err != nil {
		t.Errorf("a rejected plan needs no commit: %v", err)
	}
	c.run("w5", "web", 5, "n0")
	stop := &model.Plan{Job: key("web"), Groups: []model.CommitGroup{{Stops: []model.Stop{{AllocID: "w5"}}}}}
	if _, err := failing.ApplyOne(stop); !errors.As(err, &commit) || !errors.Is(err, errDisk) {
		t.Errorf("failing commit: %v", err)
	}
}

// flaky fails every n-th commit.
type flaky struct {
	*cluster
	every   int64
	commits atomic.Int64
	last    *apply.Batch
}

func (f *flaky) Commit(ctx context.Context, b *apply.Batch) (planner.CommitResult, error) {
	if f.commits.Add(1)%f.every == 0 {
		return planner.CommitResult{}, errDisk
	}
	f.last = b
	return f.cluster.Commit(ctx, b)
}

// Many submitters with stale snapshots, failing commits, nodes that join and leave,
// and canceled submissions: no invariant is ever violated.
func TestApplier_Hammer(t *testing.T) {
	t.Parallel()
	const submitters, nodes = 8, 6
	jobs := make([]*model.Job, submitters)
	for i := range jobs {
		jobs[i] = coretest.Job(fmt.Sprintf("j%d", i)).Priority(int32(10*i+1)).Ask(int64(100+50*(i%4)), 50, 0).Count(1000).Obj()
	}
	c := newCluster(t, nodes, jobs...)
	a, stop := c.start(&flaky{cluster: c, every: 5})
	var wg sync.WaitGroup
	var committed atomic.Int64
	for i := range submitters {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for n := range soak.Scale(60) {
				plan := c.greedy(r, fmt.Sprintf("j%d", i), fmt.Sprintf("j%d-%d", i, n), n)
				ctx, cancel := context.WithCancel(context.Background())
				if r.IntN(20) == 0 {
					cancel()
				}
				res, err := a.Queue().Submit(ctx, plan)
				cancel()
				var failed *planner.CommitError
				switch {
				case err == nil:
					committed.Add(int64(len(res.Committed)))
					if _, err := c.store.WaitIndex(context.Background(), max(res.Index, res.RefreshIndex)); err != nil {
						t.Error(err)
					}
				case !errors.As(err, &failed) && !errors.Is(err, context.Canceled):
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		r := rand.New(rand.NewPCG(99, 1))
		for range soak.Scale(60) {
			c.write(func(txn *state.Txn) {
				status := model.NodeStatus(r.IntN(2))
				apply.NodeStatus(txn, 0, []string{fmt.Sprintf("n%d", r.IntN(nodes))}, apply.NodeChange{Status: &status})
			})
			if err := overfull(c.store.Snapshot()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	stop()
	snap := c.store.Snapshot()
	if err := snap.Check(); err != nil {
		t.Error(err)
	}
	if err := overfull(snap); err != nil {
		t.Error(err)
	}
	if s := a.Stats(); committed.Load() == 0 || s.Groups < uint64(committed.Load()) {
		t.Errorf("%d groups committed, %+v", committed.Load(), s)
	}
}

// greedy evicts on a random node until the allocation fits on its snapshot.
func (c *cluster) greedy(r *rand.Rand, job, id string, index int) *model.Plan {
	snap := c.store.Snapshot()
	pos := r.IntN(snap.NodeCount())
	plan := c.place(id, job, index, snap.NodeAt(int32(pos)).ID)
	g := &plan.Groups[0]
	ask := &g.Placements[0].Group.Ask
	chunk := snap.Chunk(0)
	free := chunk.Free(model.CPU)[pos]
	for _, row := range chunk.Rows(pos) {
		if free >= ask.Vec[model.CPU] || row.Priority >= plan.Priority {
			break
		}
		free += row.Group.Ask.Vec[model.CPU]
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: row.Alloc.ID, By: id})
	}
	return plan
}
