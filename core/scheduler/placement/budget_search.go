package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// A policy returns victims in its own order, and those that a strict budget
// protects are skipped. A victim that comes early may therefore use up the
// disruptions that two later ones need, and the instance stays unplaced although a valid
// set of victims exists. Trying other orders everywhere would be a search per node
// and placement. So it is done only if nothing else was found and strict budgets
// are the cause, and only on nodes where they allow some evictions but not all:
// there one set of allocations after another is excluded, the smallest first. If
// that helps on several nodes, the policy chooses among them.

// Bounds on the exclusion sets that are tried: per instance and per evaluation,
// which limits the search to some milliseconds.
const (
	maxBudgetTries           = 512
	maxBudgetTriesEvaluation = 4096
)

// budgetSearchUse counts the work of all budget searches of an evaluation.
type budgetSearchUse struct {
	tries int
	cut   bool // counted in Unplaced.SearchesCut
}

// A budgetSearch is such a search for one instance. Invariant: queue holds no set that
// was tried, and seen holds every set that was queued.
type budgetSearch struct {
	*Placer
	queue    []budgetTry // ascending by the size of the set
	seen     map[string]bool
	solved   []int32    // nodes on which a set helps
	excluded Exclusions // all those sets
	size     int        // of each of them
	tries    int

	charges []charge // of the node at hand
}

// A budgetTry is a set of allocations to exclude on a node.
type budgetTry struct {
	pos        int32
	candidates []*model.Allocation // members of the set are among these
	set        Exclusions
}

// chooseUnderBudgets returns the best option with some allocation excluded that
// the policy would evict early. If there is none, it starts the search that found
// nothing again, since explanations refer to it. Gangs have a search of their own.
func (p *Placer) chooseUnderBudgets() (choice preempt.Choice, ok bool, err error) {
	if p.e.Job.AllAtOnce || p.e.State.Base.StrictBudgetCount() == 0 {
		return choice, false, nil
	}
	s := budgetSearch{Placer: p, seen: map[string]bool{}, excluded: Exclusions{}}
	for _, pos := range p.ProtectedNodes() {
		if len(s.queue) > maxBudgetTries {
			break // the rest would never be tried
		}
		s.extend(budgetTry{pos: pos, candidates: s.contested(pos)})
	}
	if len(s.queue) == 0 {
		return choice, false, nil
	}
	if err := s.run(); err != nil {
		return choice, false, err
	}
	if len(s.solved) > 0 {
		if choice, ok, err = p.bestExcluding(s.solved, s.excluded); ok || err != nil {
			return choice, ok, err
		}
	}
	p.Close()
	return choice, false, p.search(p.Ranker.Full())
}

// run tries sets until some of one size have helped or a bound is reached. It returns
// the error of a policy at fault. A bound that is reached after a success cuts nothing
// that the explanation would have to mention.
func (s *budgetSearch) run() error {
	use := &s.e.budget
	for ; len(s.queue) > 0; s.queue = s.queue[1:] {
		try := s.queue[0]
		switch {
		case slices.Contains(s.solved, try.pos):
			continue
		case len(s.solved) > 0 && len(try.set) > s.size:
			return nil
		case s.tries == maxBudgetTries || use.tries == maxBudgetTriesEvaluation:
			if len(s.solved) == 0 {
				s.cut = true
				s.e.recordBudgetCut()
			}
			return nil
		}
		s.tries++
		use.tries++
		_, ok, err := s.bestExcluding([]int32{try.pos}, try.set)
		if err != nil {
			return err
		}
		if !ok {
			s.extend(try)
			continue
		}
		s.solved, s.size = append(s.solved, try.pos), len(try.set)
		maps.Copy(s.excluded, try.set)
	}
	return nil
}

// recordBudgetCut counts a search that found nothing before its bound, once per evaluation.
func (e *Evaluation) recordBudgetCut() {
	if !e.budget.cut {
		e.budget.cut = true
		e.Unplaced.SearchesCut++
	}
}

// extend queues every set that excludes one more allocation.
func (s *budgetSearch) extend(try budgetTry) {
	for _, larger := range ExtendExclusions(s.e.State.Base, try.set, try.candidates) {
		if key := AllocsKey(slices.Collect(maps.Keys(larger))); !s.seen[key] {
			s.seen[key] = true
			s.queue = append(s.queue, budgetTry{try.pos, try.candidates, larger})
		}
	}
}

// bestExcluding returns the best option on some nodes with allocations excluded.
func (p *Placer) bestExcluding(nodes []int32, excluded Exclusions) (preempt.Choice, bool, error) {
	p.Close()
	p.excluded = excluded
	err := p.search(nodes)
	p.excluded = nil
	if err != nil {
		return preempt.Choice{}, false, err
	}
	choice, ok, err := p.e.ws.finder.Best()
	if ok {
		choice = cloneChoice(choice)
		p.Close() // the next instance is searched on all nodes
	}
	return choice, ok, err
}

// ExtendExclusions returns the sets that exclude one more of the candidates: each
// that is under a strict budget, or in a cohort with members that may be.
func ExtendExclusions(snap *state.Snapshot, set Exclusions, candidates []*model.Allocation) (list []Exclusions) {
	budgets := snap.Budgets()
	for _, a := range candidates {
		strict := a.Job.AllOrNone || slices.ContainsFunc(snap.GroupBudgets(a.Group), func(at int32) bool { return budgets[at].Strict })
		if strict && a.Live() && !set[a] {
			larger := Exclusions{a: true}
			maps.Copy(larger, set)
			list = append(list, larger)
		}
	}
	return list
}

// AllocsKey returns a string that is equal for equal sets of allocations.
func AllocsKey(allocs []*model.Allocation) string {
	ids := make([]string, len(allocs))
	for i, a := range allocs {
		ids[i] = a.ID
	}
	slices.Sort(ids)
	return strings.Join(ids, "\x00")
}

// A charge is the eviction of a row that counts against a strict budget.
type charge struct {
	budget int32
	row    *state.Row
}

// contested returns the allocations on a node for which excluding others matters:
// those that a strict budget allows to evict while it does not allow all that are
// under it there. If other nodes or whole cohorts are affected as well, more
// evictions count against a budget than those of the node, so that it may matter
// for every candidate.
func (s *budgetSearch) contested(pos int32) (list []*model.Allocation) {
	snap, now := s.e.State.Snapshot(), s.e.Now
	rows := s.findCharges(pos)
	if !s.maySuffice(pos) {
		return nil
	}
	affectsOthers := s.Rules != nil && !s.Rules.Allows(pos) ||
		slices.ContainsFunc(rows, func(row state.Row) bool { return row.Group.Job.AllOrNone })
	for k := range rows {
		row := &rows[k]
		matters, protected, charged := affectsOthers, false, false
		for _, c := range s.charges {
			if c.row == row {
				allowed := snap.DisruptionsAllowed(c.budget, now)
				matters, protected, charged = matters || s.count(c.budget) > allowed, protected || allowed < 1, true
			}
		}
		if matters && !protected && (charged || row.Group.Job.AllOrNone) {
			list = append(list, row.Alloc)
		}
	}
	return list
}

// findCharges sets s.charges for a node and returns its rows up to the ceiling.
func (s *budgetSearch) findCharges(pos int32) []state.Row {
	snap := s.e.State.Snapshot()
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	rows := chunk.Rows(i)
	s.charges = s.charges[:0]
	for k := range rows {
		row := &rows[k]
		if int64(row.Priority) > s.e.Preemption.Ceiling {
			return rows[:k]
		}
		if !row.Started {
			continue // its eviction counts against no budget
		}
		for _, at := range snap.GroupBudgets(row.Group) {
			if snap.Budgets()[at].Strict {
				s.charges = append(s.charges, charge{at, row})
			}
		}
	}
	return rows
}

// count returns how many rows of the node a strict budget applies to.
func (s *budgetSearch) count(budget int32) (n int) {
	for _, c := range s.charges {
		if c.budget == budget {
			n++
		}
	}
	return n
}

// maySuffice reports whether a node would have enough capacity after the eviction
// of everything except for the rows that each strict budget protects in any case,
// assuming that it allows the largest ones.
func (s *budgetSearch) maySuffice(pos int32) bool {
	snap := s.e.State.Snapshot()
	free := FreeableCapacity(snap, pos, s.e.Preemption.Ceiling)
	for _, d := range s.group.Ask.Dims {
		slices.SortFunc(s.charges, func(a, b charge) int {
			return cmp.Or(cmp.Compare(a.budget, b.budget), cmp.Compare(b.row.Group.Ask.Vec[d], a.row.Group.Ask.Vec[d]))
		})
		protected, allowed := int64(0), 0
		for k, c := range s.charges {
			if k == 0 || c.budget != s.charges[k-1].budget {
				protected, allowed = 0, max(0, snap.DisruptionsAllowed(c.budget, s.e.Now))
			}
			if allowed--; allowed < 0 {
				protected += c.row.Group.Ask.Vec[d]
			}
			if free[d]-protected < s.group.Ask.Vec[d] {
				return false
			}
		}
	}
	return true
}
