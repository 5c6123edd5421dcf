package state_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
)

func drawBudgetKey(t *rapid.T) model.BudgetKey {
	return model.BudgetKey{
		Namespace: rapid.SampledFrom([]string{"default", "other"}).Draw(t, "namespace"),
		Name:      rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"),
	}
}

func writeBudget(t *rapid.T, w *world) {
	key := drawBudgetKey(t)
	b := &model.Budget{Namespace: key.Namespace, Name: key.Name, Labels: drawLabels(t), Strict: rapid.Bool().Draw(t, "strict")}
	bound := &model.Bound{Number: rapid.Int32Range(0, 100).Draw(t, "bound"), Percent: rapid.Bool().Draw(t, "percent")}
	if rapid.Bool().Draw(t, "min") {
		b.MinAvailable = bound
	} else {
		b.MaxUnavailable = bound
	}
	w.txn.BudgetWriter().Upsert(b)
	created := w.ref.index
	if old := w.ref.budgets[key]; old != nil {
		created = old.CreateIndex
	}
	if b.CreateIndex != created || b.ModifyIndex != w.ref.index {
		t.Fatalf("budget created at %d, modified at %d; want %d and %d", b.CreateIndex, b.ModifyIndex, created, w.ref.index)
	}
	w.ref.budgets[key] = b
}

func deleteBudget(t *rapid.T, w *world) {
	key := drawBudgetKey(t)
	w.txn.BudgetWriter().Delete(key)
	delete(w.ref.budgets, key)
}

// compareBudgets computes the expected counts from the plain tables.
func compareBudgets(t *rapid.T, v *View, r *reference) {
	want := sorted(r.budgets, func(a, b *model.Budget) int { return a.Key().Compare(b.Key()) })
	if len(v.Budgets()) != len(want) {
		t.Fatalf("%d budgets, want %d", len(v.Budgets()), len(want))
	}
	strict := 0
	for at, b := range want {
		if v.Budgets()[at] != b || v.Budget(b.Key()) != b {
			t.Fatalf("budget %s is another one", b.Key())
		}
		if b.Strict && len(b.Labels) > 0 {
			strict++
		}
		if got, want := v.DisruptionsAllowed(int32(at), 0), r.slack(b); got != want {
			t.Fatalf("budget %s of %v has a slack of %d, want %d", b.Key(), b.Labels, got, want)
		}
		for _, a := range r.allocs {
			found := false
			for _, k := range v.GroupBudgets(a.Group) {
				found = found || int(k) == at
			}
			if found != under(a.Group, b) {
				t.Fatalf("%s is under budget %s: %t", a.ID, b.Key(), found)
			}
		}
	}
	if v.StrictBudgetCount() != strict {
		t.Fatalf("%d strict budgets, want %d", v.StrictBudgetCount(), strict)
	}
	discouraging, banishing := false, false
	for _, n := range r.nodes {
		discouraging, banishing = discouraging || n.HasSoftTaint(), banishing || n.HasNoExecute()
	}
	if v.HasSoftTaints() != discouraging || v.HasNoExecuteTaints() != banishing {
		t.Fatalf("some node discourages: %t, some banishes: %t", v.HasSoftTaints(), v.HasNoExecuteTaints())
	}
}

func under(g *model.Group, b *model.Budget) bool {
	if g.Job.Namespace != b.Namespace || len(b.Labels) == 0 {
		return false
	}
	for key, value := range b.Labels {
		if got, ok := g.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func (r *reference) slack(b *model.Budget) int {
	available, desired, done, everywhere := 0, 0, 0, 0
	for _, j := range r.jobs {
		for _, g := range j.Groups {
			switch {
			case j.Stopped || !under(g, b):
			case !j.Type.PerNode():
				desired += g.Count
			case g.Count > 0:
				for _, n := range r.nodes {
					if g.IsFeasible(n) {
						everywhere++
					}
				}
			}
		}
	}
	for _, a := range r.allocs {
		if !under(a.Group, b) {
			continue
		}
		n := r.nodes[a.NodeID]
		if a.Started && a.Desired == model.DesiredRun && !a.Client.Terminal() && n != nil && n.Status != model.NodeDown {
			available++
		}
		if j := r.jobs[a.Job.Key()]; j != nil && !j.Stopped && j.Type == model.JobBatch &&
			a.Desired == model.DesiredRun && a.Client == model.ClientComplete {
			done++
		}
	}
	desired = max(0, desired-done) + everywhere
	bound, keeps := b.MinAvailable, 0
	if bound == nil {
		bound = b.MaxUnavailable
	}
	n := int(bound.Number)
	if bound.Percent {
		n = (desired*n + 99) / 100
	}
	if keeps = n; b.MinAvailable == nil {
		keeps = max(0, desired-n)
	}
	return available - keeps
}

func TestBudget_BoundsAreRoundedUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		b       model.Budget
		desired int
		keeps   int
	}{
		{model.Budget{MinAvailable: &model.Bound{Number: 2}}, 0, 2},
		{model.Budget{MinAvailable: &model.Bound{Number: 50, Percent: true}}, 3, 2},
		{model.Budget{MinAvailable: &model.Bound{Number: 50, Percent: true}}, 0, 0},
		{model.Budget{MinAvailable: &model.Bound{Number: 1, Percent: true}}, 1, 1},
		{model.Budget{MaxUnavailable: &model.Bound{Number: 1}}, 3, 2},
		{model.Budget{MaxUnavailable: &model.Bound{Number: 5}}, 3, 0},
		{model.Budget{MaxUnavailable: &model.Bound{Number: 50, Percent: true}}, 3, 1},
		{model.Budget{MaxUnavailable: &model.Bound{Number: 100, Percent: true}}, 7, 0},
	} {
		if got := tt.b.RequiredAvailable(tt.desired); got != tt.keeps {
			t.Errorf("%v %v of %d keeps %d, want %d", tt.b.MinAvailable, tt.b.MaxUnavailable, tt.desired, got, tt.keeps)
		}
	}
}
