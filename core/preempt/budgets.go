package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Violated calls tell for each victim whose eviction overruns a disruption budget
// when they go one after the other, with its position.
func Violated(view *state.View, victims []*model.Allocation, tell func(i int)) {
	if len(view.Budgets()) == 0 {
		return
	}
	var c charges
	for i, v := range victims {
		if !v.Available() {
			continue
		}
		overrun := false
		for _, at := range view.BudgetsOf(v.Group) {
			overrun = c.add(at, 1) > view.BudgetSlack(at) || overrun
		}
		if overrun {
			tell(i)
		}
	}
}

// charges counts what is taken from budgets. A node's victims are under few.
type charges []charge

type charge struct {
	budget int32
	count  int
}

// add counts n more and tells how many that makes.
func (c *charges) add(budget int32, n int) int {
	for i := range *c {
		if (*c)[i].budget == budget {
			(*c)[i].count += n
			return (*c)[i].count
		}
	}
	*c = append(*c, charge{budget, n})
	return n
}

// of is how many are counted.
func (c charges) of(budget int32) int {
	for i := range c {
		if c[i].budget == budget {
			return c[i].count
		}
	}
	return 0
}

// findSlacks works out what every budget has left, where that matters to the
// search.
func (f *Finder) findSlacks() {
	f.slacks = f.slacks[:0]
	if !f.budgeted {
		return
	}
	for at := range f.snap.Budgets() {
		f.slacks = append(f.slacks, f.snap.BudgetSlack(int32(at)))
	}
}

// underStrict is whether a row that may be evicted for the preemptor is under a
// strict budget.
func (s *searcher) underStrict(rows []state.Row) bool {
	budgets := s.f.snap.Budgets()
	for x := range rows {
		if int64(rows[x].Priority) > s.ceiling {
			return false
		}
		for _, at := range s.f.snap.BudgetsOf(rows[x].Group) {
			if budgets[at].Strict {
				return true
			}
		}
	}
	return false
}

// overrun is whether candidates would overrun a budget between them.
func (s *searcher) overrun(candidates []*state.Row) bool {
	s.charged = s.charged[:0]
	return slices.ContainsFunc(candidates, s.overruns)
}

// mayOverrun is overrun for a node's rows, of which some may be no candidates.
func (s *searcher) mayOverrun(rows []state.Row) bool {
	s.charged = s.charged[:0]
	for x := range rows {
		if int64(rows[x].Priority) > s.ceiling {
			return false
		}
		if s.overruns(&rows[x]) {
			return true
		}
	}
	return false
}

func (s *searcher) overruns(row *state.Row) bool {
	under := s.f.snap.BudgetsOf(row.Group)
	if len(under) == 0 || !row.Alloc.Available() {
		return false
	}
	for _, at := range under {
		if s.charged.add(at, 1) > s.f.slacks[at] {
			return true
		}
	}
	return false
}

// violations is how many victims of an option overrun a budget.
func (s *searcher) violations(victims []*state.Row) (n int32) {
	s.charged = s.charged[:0]
	for _, row := range victims {
		under := s.f.snap.BudgetsOf(row.Group)
		if len(under) == 0 || !row.Alloc.Available() {
			continue
		}
		overrun := false
		for _, at := range under {
			overrun = s.charged.add(at, 1) > s.f.slacks[at] || overrun
		}
		if overrun {
			n++
		}
	}
	return n
}

// addBudgets lays out which budgets evicting rows costs one.
func addBudgets(r *sdk.Rows, snap *state.Snapshot, rows []*state.Row) {
	if r.Budgets == nil {
		r.Budgets = &sdk.BudgetRefs{}
	}
	refs := r.Budgets
	refs.At = refs.At[:0]
	if len(snap.Budgets()) == 0 {
		refs.First = zeroed(refs.First, len(rows)+1)
		return
	}
	refs.First = sized(refs.First, len(rows)+1)
	refs.First[0] = 0
	for i, row := range rows {
		if under := snap.BudgetsOf(row.Group); len(under) > 0 && row.Alloc.Available() {
			refs.At = append(refs.At, under...)
		}
		refs.First[i+1] = int32(len(refs.At))
	}
}

// budgetTable is the table of all budgets.
func (f *Finder) budgetTable(ids *dictionary) (t sdk.BudgetTable) {
	for at, b := range f.snap.Budgets() {
		strict := uint8(0)
		if b.Strict {
			strict = 1
		}
		t.Name = append(t.Name, ids.id(b.Namespace+"\x00"+b.Name))
		t.Slack = append(t.Slack, int32(max(0, f.slacks[at])))
		t.Strict = append(t.Strict, strict)
	}
	return t
}

// refreshBudgets works out anew what budgets have left, and finds the nodes with
// something under one of which that is more or less than before: options there
// may have other victims now, or the same ones may overrun it.
func (f *Finder) refreshBudgets(w *searcher) {
	f.affected = f.affected[:0]
	if !f.budgeted {
		return
	}
	f.before = append(f.before[:0], f.slacks...)
	f.findSlacks()
	changed := false
	for at, b := range f.snap.Budgets() {
		if f.slacks[at] != f.before[at] {
			changed = true
			f.addAffected(b, w.ceiling)
		}
	}
	if changed {
		w.renewShared()
	}
	slices.Sort(f.affected)
	f.affected = slices.Compact(f.affected)
}

// addAffected adds the nodes on which something is under a budget that may be
// evicted.
func (f *Finder) addAffected(b *model.Budget, ceiling int64) {
	for key := range f.snap.Labelled(b.Labels) {
		if key.Namespace != b.Namespace {
			continue
		}
		f.allocs = f.snap.AppendJobAllocs(f.allocs[:0], key)
		for _, a := range f.allocs {
			if !a.Live() || int64(a.Job.Priority) > ceiling || !b.Matches(a.Group) {
				continue
			}
			if k, ok := f.slot(a.NodePos); ok {
				f.affected = append(f.affected, k)
			}
		}
	}
}
