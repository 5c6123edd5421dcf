package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// findSlacks works out what every budget has left, where that matters to the
// search.
func (f *Finder) findSlacks() {
	f.slacks, f.leastSlack = f.slacks[:0], math.MaxInt
	if !f.budgeted {
		return
	}
	for at := range f.snap.Budgets() {
		slack := f.snap.DisruptionsAllowed(int32(at), f.req.Now)
		f.slacks, f.leastSlack = append(f.slacks, slack), min(f.leastSlack, slack)
	}
}

// underStrict is whether a row that may be evicted for the preemptor is under a
// strict budget that the node's rows could use up.
func (s *searcher) underStrict(rows []state.Row) bool {
	if s.f.leastSlack >= len(rows) {
		return false
	}
	budgets := s.f.snap.Budgets()
	for x := range rows {
		if int64(rows[x].Priority) > s.ceiling {
			return false
		}
		for _, at := range s.f.snap.GroupBudgets(rows[x].Group) {
			if budgets[at].Strict && s.f.slacks[at] < len(rows) {
				return true
			}
		}
	}
	return false
}

// overrun is whether candidates would overrun a budget between them.
func (s *searcher) overrun(candidates []*state.Row) bool {
	if s.f.leastSlack >= len(candidates) {
		return false
	}
	s.charged = s.charged[:0]
	return slices.ContainsFunc(candidates, func(row *state.Row) bool { return s.overruns(row, len(candidates)) })
}

// mayOverrun is overrun for a node's rows, of which some may be no candidates.
func (s *searcher) mayOverrun(rows []state.Row) bool {
	if s.f.leastSlack >= len(rows) {
		return false
	}
	s.charged = s.charged[:0]
	for x := range rows {
		if int64(rows[x].Priority) > s.ceiling {
			return false
		}
		if s.overruns(&rows[x], len(rows)) {
			return true
		}
	}
	return false
}

// overruns protect.Charges a row and tells whether that overruns a budget. Budgets that
// most rows could not use up are not looked at.
func (s *searcher) overruns(row *state.Row, most int) bool {
	if !row.Started {
		return false
	}
	for _, at := range s.f.snap.GroupBudgets(row.Group) {
		if slack := s.f.slacks[at]; slack < most && s.charged.Add(at, 1) > slack {
			return true
		}
	}
	return false
}

// violations is how many victims of an option overrun a budget.
func (s *searcher) violations(victims []*state.Row) (n int32) {
	if s.f.leastSlack >= len(victims) {
		return 0
	}
	s.charged = s.charged[:0]
	for _, row := range victims {
		if !row.Started {
			continue
		}
		overrun := false
		for _, at := range s.f.snap.GroupBudgets(row.Group) {
			if slack := s.f.slacks[at]; slack < len(victims) {
				overrun = s.charged.Add(at, 1) > slack || overrun
			}
		}
		if overrun {
			n++
		}
	}
	return n
}

// narrow leaves those of the candidates that a policy may reach which puts budgets
// before ascending priorities. Where the candidates overrun none between them they
// are all it ever looks at, level by level; where every budget that they overrun
// has nothing left it is known who does, and those go last, level by level, too;
// else all are shown.
func (s *searcher) narrow(p *place) {
	p.showsAll = s.around && s.overrun(s.eligible)
	if !p.showsAll || !p.plain || !s.findTight() {
		return
	}
	missing := s.reachLevels(false, s.startMissing())
	s.reachLevels(true, missing)
	kept := 0
	for i, row := range s.eligible {
		if s.reached[i] {
			s.eligible[kept], s.mustLeave[kept] = row, s.mustLeave[i]
			kept++
		}
	}
	s.eligible, s.mustLeave = s.eligible[:kept], s.mustLeave[:kept]
}

// findTight marks the candidates that overrun a budget; false when that depends on
// who else goes.
func (s *searcher) findTight() bool {
	most := len(s.eligible)
	s.charged, s.tight, s.reached = s.charged[:0], zeroed(s.tight, most), zeroed(s.reached, most)
	for i, row := range s.eligible {
		if !row.Started {
			continue
		}
		for _, at := range s.f.snap.GroupBudgets(row.Group) {
			switch slack := s.f.slacks[at]; {
			case slack <= 0:
				s.tight[i] = true
			case slack < most && s.charged.Add(at, 1) > slack:
				return false
			}
		}
	}
	return true
}

// reachLevels marks the candidates that are tight or not as reached, priority by
// priority as long as something is missing, and returns how much still is.
func (s *searcher) reachLevels(tight bool, missing int) int {
	level, open := int32(0), false
	for i, row := range s.eligible {
		if s.tight[i] != tight {
			continue
		}
		if !open || row.Priority != level {
			if missing <= 0 {
				break
			}
			level, open = row.Priority, true
		}
		s.reached[i] = true
		missing -= s.f.watch.frees(s.missing, &row.Group.Ask.Vec)
	}
	return missing
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
		if under := snap.GroupBudgets(row.Group); len(under) > 0 && row.Started {
			refs.At = append(refs.At, under...)
		}
		refs.First[i+1] = int32(len(refs.At))
	}
}

// budgetTable is the table of all budgets.
func (f *Finder) budgetTable(ids *columns.Strings) (t sdk.BudgetTable) {
	n := len(f.slacks)
	t.Name, t.Slack, t.Strict = make([]int32, 0, n), make([]int32, 0, n), make([]uint8, 0, n)
	for at, b := range f.snap.Budgets() {
		strict := uint8(0)
		if b.Strict {
			strict = 1
		}
		t.Name = append(t.Name, ids.ID(b.ID()))
		t.Slack = append(t.Slack, int32(max(0, f.slacks[at])))
		t.Strict = append(t.Strict, strict)
	}
	return t
}

// refreshGuards works out anew what depends on evictions elsewhere, and finds the
// nodes that they affect: those with others of a job that goes whole, and those
// with something under a budget of which more or less is left than before, where
// options may have other victims now, or the same ones may overrun it.
func (f *Finder) refreshGuards(w *searcher, evicted []*model.Group) {
	f.affected = f.affected[:0]
	for _, g := range evicted {
		if g.Job.AllOrNone {
			f.addHolders(g.Job.Key(), w.ceiling, func(*model.Allocation) bool { return true })
		}
	}
	if f.budgeted {
		f.refreshBudgets(w)
	}
	slices.Sort(f.affected)
	f.affected = slices.Compact(f.affected)
}

func (f *Finder) refreshBudgets(w *searcher) {
	f.before = append(f.before[:0], f.slacks...)
	f.findSlacks()
	changed := false
	for at, b := range f.snap.Budgets() {
		if f.slacks[at] == f.before[at] {
			continue
		}
		changed = true
		for key := range f.snap.BudgetJobs(b) {
			f.addHolders(key, w.ceiling, func(a *model.Allocation) bool { return b.Matches(a.Group) })
		}
	}
	if changed {
		w.renewShared()
	}
}

// addHolders adds the nodes with an allocation of a job that may be evicted and
// that is meant.
func (f *Finder) addHolders(key model.JobKey, ceiling int64, meant func(*model.Allocation) bool) {
	f.allocs = f.snap.AppendJobAllocs(f.allocs[:0], key)
	for _, a := range f.allocs {
		if !a.Live() || int64(a.Job.Priority) > ceiling && !a.Job.AllOrNone || !meant(a) {
			continue
		}
		if k, ok := f.slot(a.NodePos); ok {
			f.affected = append(f.affected, k)
		}
	}
}
