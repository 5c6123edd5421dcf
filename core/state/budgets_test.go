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
		n := r.nodes[a.NodeID]
		if under(a.Group, b) && a.Started && a.Desired == model.DesiredRun && !a.Client.Terminal() && n != nil && n.Status != model.NodeDown {
			available++
		}
		if j := r.jobs[a.Job.Key()]; j != nil && j.Type == model.JobBatch && a.IsDone(j) {
			if g := j.Group(a.Group.Name); g != nil && a.Index < g.Count && under(g, b) {
				done++
			}
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

// A completed instance reduces what a budget requires only while its job desires it: it has a
// lower index than the count, and the labels of its group still match.
func TestBudget_CountsCompletedInstancesOfCurrentGroup(t *testing.T) {
	s := New()
	write := func(change func(*Txn)) {
		txn := s.Begin(s.Snapshot().Index() + 1)
		change(txn)
		txn.Commit()
	}
	batch := func(version uint64, count int, app string) *model.Job {
		return &model.Job{Namespace: "default", ID: "b", Type: model.JobBatch, Version: version, Groups: []*model.Group{
			{Name: "g", Count: count, Labels: map[string]string{"app": app}},
		}}
	}
	first := batch(0, 3, "x")
	write(func(txn *Txn) {
		if err := txn.NodeWriter().Upsert(&model.Node{ID: "n"}); err != nil {
			t.Fatal(err)
		}
		txn.BudgetWriter().Upsert(&model.Budget{Namespace: "default", Name: "x", Labels: map[string]string{"app": "x"}, MinAvailable: &model.Bound{Number: 100, Percent: true}})
		web := &model.Job{Namespace: "default", ID: "web", Groups: []*model.Group{{Name: "g", Count: 2, Labels: map[string]string{"app": "x"}}}}
		for _, j := range []*model.Job{first, web} {
			if err := txn.JobWriter().Upsert(j); err != nil {
				t.Fatal(err)
			}
		}
		for i, client := range []model.ClientStatus{model.ClientRunning, model.ClientComplete, model.ClientComplete} {
			txn.AllocWriter().Upsert(&model.Allocation{ID: string(rune('a' + i)), Job: first, Group: first.Groups[0], Index: i, NodeID: "n", Client: client, Started: true})
		}
	})
	for _, step := range []struct {
		name string
		job  *model.Job
		want int
	}{
		{"three, of which two have completed", nil, 2 + 1},
		{"one, which runs", batch(1, 1, "x"), 2 + 1},
		{"none under the budget", batch(2, 3, "y"), 2},
		{"three again", batch(3, 3, "x"), 2 + 1},
	} {
		if step.job != nil {
			write(func(txn *Txn) {
				if err := txn.JobWriter().Upsert(step.job); err != nil {
					t.Fatal(err)
				}
			})
		}
		if _, keeps := s.Snapshot().BudgetAvailability(0); keeps != step.want {
			t.Errorf("%s: the budget requires %d, want %d", step.name, keeps, step.want)
		}
		if err := s.Snapshot().Check(); err != nil {
			t.Error(err)
		}
	}
}
