package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// everywhere is the kubernetes policy without a promise about the option that it takes,
// so that it is called for every node.
type everywhere struct{ *kubernetes.Policy }

func (p everywhere) Info() sdk.Info {
	info := p.Policy.Info()
	info.LeastFirst = false
	return info
}

// crowd is a cluster that is large enough for rounds, full of allocations of a few
// priorities and sizes. Some are not evictable, and there are budgets of all kinds.
func crowd(d *rand.Rand) *state.Store {
	few := 2 + d.IntN(6)
	store := coretest.FilledStoreWith(600, 4+d.IntN(8), func(j *model.Job) {
		j.Priority = int32(d.IntN(few) * 10)
		j.NonPreemptible = d.IntN(8) == 0
		j.AllOrNone = d.IntN(40) == 0
		g := j.Groups[0]
		g.Labels = map[string]string{"app": j.ID, "tier": fmt.Sprint(d.IntN(5))}
		*g = *coretest.Job(j.ID).Priority(j.Priority).Ask(int64(150+50*d.IntN(6)), int64(300+100*d.IntN(6)), 300).With(func(other *model.Group) {
			other.Labels = g.Labels
		}).Obj().Groups[0]
		g.Job = j
	}, func(a *model.Allocation) {
		a.StartTime, a.Started = -int64(d.IntN(50))*1e9, d.IntN(10) > 0
	})
	txn := store.Begin(store.Snapshot().Index() + 1)
	n, strict := 0, d.IntN(3)
	for _, labels := range someLabels(d, store) {
		b := &model.Budget{
			Namespace: model.DefaultNamespace, Name: fmt.Sprint("b", n), Labels: labels,
			Strict: d.IntN(2) < strict, MinAvailable: &model.Bound{},
		}
		n++
		txn.BudgetWriter().Upsert(b)
		at, _ := txn.BudgetPosition(b.Key())
		again := *b
		again.MinAvailable = &model.Bound{Number: max(0, int32(txn.DisruptionsAllowed(at, 0))-int32(d.IntN(4)))}
		txn.BudgetWriter().Upsert(&again)
	}
	txn.Commit()
	return store
}

// someLabels returns labels of single jobs and labels that several jobs share.
func someLabels(d *rand.Rand, store *state.Store) (list []map[string]string) {
	for j := range store.Snapshot().Jobs() {
		if d.IntN(3) == 0 {
			list = append(list, map[string]string{"app": j.ID})
		}
	}
	for tier := range d.IntN(5) {
		list = append(list, map[string]string{"tier": fmt.Sprint(tier)})
	}
	return list
}

// A policy that declares which option it takes returns the same in rounds as when it is
// called for all nodes, for any number of instances.
func TestRounds_EqualFullSearch(t *testing.T) {
	t.Parallel()
	placed := 0
	for seed := range uint64(soak.Scale(10)) {
		d := rand.New(rand.NewPCG(23, seed))
		store := crowd(d)
		j := coretest.PreemptingJob(1 + d.IntN(30)).Change(func(j *model.Job) { j.AllAtOnce = d.IntN(6) == 0 }).Obj()
		config := *coretest.AllPreempt()
		config.Policy = "kubernetes"
		txn := store.Begin(store.Snapshot().Index() + 1)
		txn.ConfigWriter().Set(&config)
		txn.Commit()
		snap := coretest.PutJobs(store, j)
		plans := map[string]bool{}
		for workers, asked := range []func() sdk.Policy{
			func() sdk.Policy { return everywhere{kubernetes.New()} },
			func() sdk.Policy { return kubernetes.New() },
			func() sdk.Policy { return kubernetes.New() },
		} {
			s := scheduler.New(scheduler.Config{Policies: coretest.Policies(asked), Workers: max(1, workers)})
			out, err := s.Process(coretest.Eval(j), snap, 1)
			must(err)
			plans[format(out)] = true
			for _, g := range out.Plan.Groups {
				placed += len(g.Placements)
			}
		}
		if len(plans) != 1 {
			t.Fatalf("seed %d: %d plans: %v", seed, len(plans), plans)
		}
	}
	if placed < soak.Count(100, 100) {
		t.Errorf("%d placed: too few", placed)
	}
}

// A policy that also declares the order of victims is called only for the nodes with the
// lowest cost, independent of budgets.
func TestRounds_CallOnlyForLowestCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strict bool
		slack  int32
	}{
		"plenty": {false, 1 << 20}, "some": {false, 1}, "used up": {false, 0}, "strict": {true, 1}, "strict, two": {true, 2},
	} {
		store := withBudgets(1000, "kubernetes", c.strict, c.slack)
		j := coretest.PreemptingJob(1).Obj()
		snap := coretest.PutJobs(store, j)
		asked := 0
		s := scheduler.New(scheduler.Config{
			Policies: coretest.Policies(func() sdk.Policy { return kubernetes.New() }),
			Observe: func(d scheduler.Decision) {
				for _, call := range d.Outcome.Calls {
					if call.Hook == "SelectVictims" {
						asked += call.Options
					}
				}
			},
		})
		out, err := s.Process(coretest.Eval(j), snap, 1)
		must(err)
		if len(out.Plan.Groups) == 0 || len(out.Plan.Groups[0].Evictions) == 0 || asked == 0 {
			t.Fatalf("%s: nothing is evicted, of %d options", name, asked)
		}
		if asked > 10 { // maximum that may start together
			t.Errorf("%s: called for %d options", name, asked)
		}
	}
}
