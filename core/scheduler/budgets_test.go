package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// schedule runs workers that plan on arbitrary old snapshots, and an applier that gets
// their plans in any order, while allocations start, fail and end, nodes fail, and
// writes are lost.
type schedule struct {
	*fixture
	d       *rand.Rand
	applier *planner.Applier
	workers []*scheduler.Scheduler
	past    []*state.Snapshot
	plans   []*model.Plan
	loses   bool // the next write
	jobs    []string
	gone    []eviction // everything that was evicted while available

	refused, evicted int
}

type eviction struct {
	at    int64
	group *model.Group
}

// Commit is part of planner.Committer. A lost write leaves no trace.
func (s *schedule) Commit(ctx context.Context, batch *apply.Batch) (planner.CommitResult, error) {
	if s.loses {
		s.loses = false
		return planner.CommitResult{}, errors.New("the leader is gone")
	}
	return planner.DirectCommitter{Store: s.store}.Commit(ctx, batch)
}

func rollSchedule(t *testing.T, seed uint64) *schedule {
	s := &schedule{fixture: newFixture(t), d: rand.New(rand.NewPCG(3, seed))}
	s.applier = planner.NewApplier(planner.Config{Store: s.store, Committer: s, PlacementVerifier: &feasible.Verifier{}})
	for range 3 {
		s.workers = append(s.workers, scheduler.New(scheduler.Config{Policies: coretest.Policies()}))
	}
	for i := range 3 + s.d.IntN(3) {
		s.node(fmt.Sprint("n", i))
	}
	s.write(func(txn *state.Txn) {
		number := func(most int) *model.Bound { return &model.Bound{Number: int32(s.d.IntN(most))} }
		for name, b := range map[string]*model.Budget{
			"least":    {Labels: labels("x"), MinAvailable: number(3)},
			"share":    {Labels: labels("y"), MaxUnavailable: &model.Bound{Number: int32(s.d.IntN(101)), Percent: true}},
			"rate":     {Labels: labels("x"), MaxEvictions: &model.Rate{Number: int32(s.d.IntN(6)), Window: time.Minute}},
			"in space": {MaxEvictions: &model.Rate{Number: int32(1 + s.d.IntN(4)), Window: 5 * time.Minute}},
		} {
			if s.d.IntN(4) > 0 {
				b.Namespace, b.Name, b.Strict = model.DefaultNamespace, name, true
				txn.BudgetWriter().Upsert(b)
			}
		}
	})
	for i := range 6 {
		id := fmt.Sprint("j", i)
		s.jobs = append(s.jobs, id)
		s.job(job(id, int32(10+20*(i%4)), int64(2+s.d.IntN(4)), 1).Count(1 + s.d.IntN(4)).With(func(g *model.Group) {
			g.Labels = labels([]string{"x", "y"}[s.d.IntN(2)])
		}).Change(func(j *model.Job) {
			j.AllAtOnce, j.AllOrNone = s.d.IntN(5) == 0, s.d.IntN(5) == 0
		}).Obj())
	}
	s.past = []*state.Snapshot{s.store.Snapshot()}
	return s
}

// step performs one random action.
func (s *schedule) step() {
	switch k := s.d.IntN(12); {
	case k < 5:
		s.planSomething()
	case k < 9:
		s.applySomething()
	case k == 9:
		s.now += int64(s.d.IntN(90)) * int64(time.Second)
	default:
		s.changeSomething()
	}
	s.past = append(s.past, s.store.Snapshot())
}

func (s *schedule) planSomething() {
	snap := s.past[max(0, len(s.past)-1-s.d.IntN(8))]
	j := snap.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: s.jobs[s.d.IntN(len(s.jobs))]})
	out, err := s.workers[s.d.IntN(len(s.workers))].Process(coretest.Eval(j), snap, s.now)
	must(err)
	if len(out.Plan.Groups) > 0 {
		out.Plan.EvalID = fmt.Sprint("e", len(s.past))
		s.plans = append(s.plans, out.Plan)
	}
}

func (s *schedule) applySomething() {
	if len(s.plans) == 0 {
		return
	}
	at := s.d.IntN(len(s.plans))
	plan := *s.plans[at]
	s.plans = slices.Delete(s.plans, at, at+1)
	s.loses = s.d.IntN(8) == 0
	plan.Now = s.now // there is no clock: the time is that of the plans
	before := s.store.Snapshot()
	r, err := s.applier.ApplyOne(&plan)
	if s.loses = false; err != nil {
		return
	}
	s.refused += len(r.Rejected)
	s.check(before, s.store.Snapshot())
}

// changeSomething changes a client status or a node.
func (s *schedule) changeSomething() {
	s.write(func(txn *state.Txn) {
		for a := range s.store.Snapshot().Allocs() {
			next := *a
			switch s.d.IntN(5) {
			case 0, 1, 2:
				if !a.Started && a.Live() {
					next.Client, next.Started, next.StartTime = model.ClientRunning, true, s.now
					txn.AllocWriter().Upsert(&next)
				}
			case 3:
				if s.d.IntN(6) == 0 && !a.Client.Terminal() {
					next.Client, next.EndTime = model.ClientFailed, s.now
					txn.AllocWriter().Upsert(&next)
				}
			}
		}
		if s.d.IntN(10) == 0 {
			n := *txn.Node(fmt.Sprint("n", s.d.IntN(3)))
			n.Drain = !n.Drain
			must(txn.NodeWriter().Upsert(&n))
		}
	})
}

// check counts strict budgets on the plain tables and fails if a step evicted more than
// a budget allowed.
func (s *schedule) check(before, after *state.Snapshot) {
	s.t.Helper()
	var lost []*model.Allocation
	for a := range before.Allocs() {
		if a.Started && a.Live() && after.Alloc(a.ID).Desired == model.DesiredEvict {
			lost = append(lost, a)
			s.gone = append(s.gone, eviction{s.now, a.Group})
			s.evicted++
		}
	}
	under := func(b *model.Budget, g *model.Group) bool {
		for k, v := range b.Labels {
			if g.Labels[k] != v {
				return false
			}
		}
		return true
	}
	for _, b := range before.Budgets() {
		costs := 0
		for _, a := range lost {
			if under(b, a.Group) {
				costs++
			}
		}
		if costs == 0 {
			continue
		}
		if b.MaxEvictions != nil {
			n := 0
			for _, e := range s.gone {
				if under(b, e.group) && e.at > s.now-int64(b.MaxEvictions.Window) {
					n++
				}
			}
			if n > int(b.MaxEvictions.Number) {
				s.t.Fatalf("budget %s allows %s: there were %d", b.Name, b.MaxEvictions, n)
			}
			continue
		}
		left, wanted := 0, 0
		for a := range after.Allocs() {
			// Stops for another reason, such as on a draining node, are not evictions.
			old := before.Alloc(a.ID)
			stays := a.Live() || old != nil && old.Live() && a.Desired == model.DesiredStop
			if a.Started && stays && under(b, a.Group) {
				left++
			}
		}
		for j := range before.Jobs() {
			if under(b, j.Groups[0]) {
				wanted += j.Groups[0].Count
			}
		}
		if left < b.RequiredAvailable(wanted) {
			s.t.Fatalf("budget %s requires %d available: %d were evicted and %d are left", b.Name, b.RequiredAvailable(wanted), costs, left)
		}
	}
	if err := after.Check(); err != nil {
		s.t.Fatal(err)
	}
}

// Concurrent plans never exceed a strict budget of either kind, in whichever order they
// are applied.
func TestBudgets_StrictOnesHoldUnderConcurrentPlans(t *testing.T) {
	t.Parallel()
	evicted, refused := 0, 0
	for seed := range uint64(soak.Count(350, 50_000)) {
		s := rollSchedule(t, seed)
		for range 60 {
			s.step()
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		evicted, refused = evicted+s.evicted, refused+s.refused
	}
	t.Logf("%d evicted, %d groups rejected", evicted, refused)
	if few := soak.Count(150, 500); evicted < few || refused < few {
		t.Errorf("%d evicted, %d groups rejected: too few", evicted, refused)
	}
}
