package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func strict(name string, atLeast int32) *model.Budget {
	return &model.Budget{
		Namespace: model.DefaultNamespace, Name: name, Labels: map[string]string{"app": name},
		MinAvailable: &model.Bound{Number: atLeast}, Strict: true,
	}
}

func labelled(app string) func(*model.Group) {
	return func(g *model.Group) { g.Labels = map[string]string{"app": app} }
}

// Sixty instances on sixty nodes, of which forty must remain available, and a plan
// against each of them, all made on one snapshot and submitted at once: twenty may
// hold, in any grouping into batches.
func TestApplier_ManyPlansNeverOverrunAStrictBudgetTogether(t *testing.T) {
	t.Parallel()
	const instances, keeps = 60, 40
	c := newCluster(t, instances,
		coretest.Job("web").Priority(20).Ask(800, 100, 0).Count(instances).With(labelled("web")).Obj(),
		coretest.Job("urgent").Priority(90).Ask(500, 100, 0).Count(instances).Obj())
	c.write(func(txn *state.Txn) { txn.BudgetWriter().Upsert(strict("web", keeps)) })
	for i := range instances {
		c.run(fmt.Sprintf("w%d", i), "web", i, fmt.Sprintf("n%d", i))
	}
	applier, stop := c.start(c)
	defer stop()
	plans := make([]*model.Plan, instances)
	for i := range plans {
		plans[i] = c.place(fmt.Sprintf("u%d", i), "urgent", i, fmt.Sprintf("n%d", i), fmt.Sprintf("w%d", i))
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	committed := 0
	for _, plan := range plans {
		wg.Go(func() {
			result, err := applier.Queue().Submit(t.Context(), plan)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case result.FullyCommitted():
				committed++
			case !strings.Contains(result.Rejected[0].Reason, `the strict disruption budget "default/web" allows 0 more evictions`):
				t.Errorf("rejected: %s", result.Rejected[0].Reason)
			}
		})
	}
	wg.Wait()
	if committed != instances-keeps {
		t.Errorf("%d plans were committed, want %d", committed, instances-keeps)
	}
	snap := c.store.Snapshot()
	if slack := snap.DisruptionsAllowed(0, 0); slack != 0 {
		t.Errorf("the budget has a slack of %d", slack)
	}
	if err := snap.Check(); err != nil {
		t.Error(err)
	}
	if n := applier.Stats().Rejected[planner.CauseBudget]; n != keeps {
		t.Errorf("%d rejections are counted as the budget's", n)
	}
}

// guardedWorld is newWorld with budgets, tolerations and an all-or-none job.
func guardedWorld(t testing.TB) *world {
	w := newWorld(t)
	w.write(func(txn *state.Txn) {
		for id, change := range map[string]func(*model.Job){
			"a20": func(j *model.Job) { labelled("x")(j.Groups[0]) },
			"b50": func(j *model.Job) { j.Groups[0].Labels = map[string]string{"app": "x", "tier": "y"} },
			"c50": func(j *model.Job) {
				j.AllOrNone = true
				labelled("z")(j.Groups[0])
				j.Groups[0].MinCount = 2
			},
			"e70": func(j *model.Job) { j.Toleration = &model.PreemptionToleration{MinPreemptorPriority: new(int32(95))} },
		} {
			j := *txn.Job(key(id))
			groups := j.Groups
			j.Groups = nil
			for _, g := range groups {
				own := *g
				j.Groups = append(j.Groups, &own)
			}
			change(&j)
			if err := txn.JobWriter().Upsert(&j); err != nil {
				t.Fatal(err)
			}
		}
		txn.BudgetWriter().Upsert(strict("x", 1))
		y := strict("y", 0)
		y.MinAvailable, y.MaxUnavailable, y.Labels = nil, &model.Bound{Number: 95, Percent: true}, map[string]string{"tier": "y"}
		txn.BudgetWriter().Upsert(y)
		txn.BudgetWriter().Upsert(strict("z", 2))
	})
	w.past = []*state.Snapshot{w.store.Snapshot()}
	return w
}

// start makes all placed allocations started, so that they count for budgets.
func (w *world) startAll() {
	w.write(func(txn *state.Txn) {
		var updates []apply.ClientUpdate
		for a := range txn.Allocs() {
			if a.Live() && !a.Started {
				updates = append(updates, apply.ClientUpdate{AllocID: a.ID, Status: model.ClientRunning, Started: true})
			}
		}
		apply.ClientUpdates(txn, 0, updates)
	})
	w.past = append(w.past, w.store.Snapshot())
}

// protected checks the effect of an entry on budgets, tolerations and all-or-none
// jobs, from the plain tables. An allocation stopped by its own job's plan in the
// same entry is not a victim, and may have been live when others were evicted.
func protected(before, after *state.Snapshot, batch *apply.Batch) error {
	evicted, stopped := map[string]*model.Allocation{}, map[string]bool{}
	for _, bp := range batch.Plans {
		for _, i := range bp.Groups {
			for _, s := range bp.Plan.Groups[i].Stops {
				stopped[s.AllocID] = true
			}
		}
	}
	for a := range after.Allocs() {
		if old := before.Alloc(a.ID); a.Desired == model.DesiredEvict && old != nil && old.Live() && !stopped[a.ID] {
			evicted[a.ID] = old
		}
	}
	for _, b := range before.Budgets() {
		available, desired, lost := 0, 0, 0
		for j := range before.Jobs() {
			if b.Matches(j.Groups[0]) && !j.Stopped {
				desired += j.Groups[0].Count
			}
		}
		for a := range before.Allocs() {
			if !b.Matches(a.Group) || !a.Available() {
				continue
			}
			available++
			if evicted[a.ID] != nil {
				lost++
			}
		}
		if b.Strict && lost > 0 && available-lost < b.RequiredAvailable(desired) {
			return fmt.Errorf("budget %s keeps %d of %d: %d were available and %d were evicted", b.Key(), b.RequiredAvailable(desired), desired, available, lost)
		}
	}
	for id, a := range evicted {
		if t := a.Job.Toleration; t != nil {
			return fmt.Errorf("%s tolerates no preemptor below %d", id, *t.MinPreemptorPriority)
		}
		if !a.Job.AllOrNone {
			continue
		}
		stay := 0
		for _, mate := range after.AppendJobAllocs(nil, a.Job.Key()) {
			if old := before.Alloc(mate.ID); old != nil && (mate.Live() || old.Live() && stopped[mate.ID]) {
				stay++
			}
		}
		if stay > 0 && stay < 2 {
			return fmt.Errorf("%s was evicted without %d others", id, stay)
		}
	}
	return nil
}

func TestApplier_AnyInterleavingOfStalePlansKeepsBudgets(t *testing.T) {
	t.Parallel()
	outer := t
	evicted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := guardedWorld(outer)
		flaky := &flaky{cluster: w.cluster, every: 4}
		applier := planner.NewApplier(planner.Config{Store: w.store, Committer: flaky, MaxPlans: 3})
		applier.Queue().SetEnabled(true)
		for range rapid.IntRange(1, max(8, soak.Scale(8))).Draw(t, "batches") {
			var pending []*planner.PendingPlan
			for range rapid.IntRange(1, 3).Draw(t, "plans") {
				p, err := applier.Queue().Enqueue(w.plan(t))
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, p)
			}
			before := w.store.Snapshot()
			if _, err := applier.Step(context.Background()); err != nil && !errors.Is(err, context.Canceled) {
				continue
			}
			after := w.store.Snapshot()
			if after != before {
				w.past = append(w.past, after)
				if err := promises(before, after, flaky.last); err != nil {
					t.Fatal(err)
				}
				if err := protected(before, after, flaky.last); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range pending {
				if r, err := p.Result(); err == nil {
					for _, x := range r.Rejected {
						if strings.Contains(x.Reason, "budget") || strings.Contains(x.Reason, "whole") {
							refused++
						}
					}
				}
			}
			for a := range after.Allocs() {
				if a.Desired == model.DesiredEvict {
					evicted++
				}
			}
			if rapid.Bool().Draw(t, "start") {
				w.startAll()
			}
		}
	})
	t.Logf("%d evicted, %d groups refused", evicted, refused)
	if evicted == 0 || refused == 0 {
		t.Error("the property was not exercised")
	}
}
