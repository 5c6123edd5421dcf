package preempt

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
)

// What keeps a row from being a candidate beside its priority, and who goes with
// it: preemption tolerations, jobs that are evicted whole, strict budgets. Nodes
// without any of it never come here.

// unit is the allocations of a job that go together.
type unit struct {
	rows   []*state.Row // ascending by id
	byNode []int32      // positions in rows, by node and ascending
	// spared is whether one of them may not go, so that they do not go together.
	spared bool
	// costs is how many of them work under each strict budget.
	costs protect.Charges
	// surplus is how many of a group may go alone; nil: none of any.
	surplus map[string]int
}

// guarded is whether something on the node says more of its rows than their
// priority.
func (s *searcher) guarded(p *place) bool {
	return len(s.f.req.Excluded) > 0 || p.chunk.HasEvictionRules()>>p.i&1 == 1 || s.strict && s.underStrict(p.rows)
}

// mayGo is whether a row of a guarded node may be a victim.
func (s *searcher) mayGo(p *place, row *state.Row) bool {
	if s.f.req.Excluded[row.Alloc] {
		return false
	}
	job := row.Group.Job
	if !job.AllOrNone {
		return s.mayGoAlone(p, row)
	}
	u := s.unit(job.Key())
	if u.surplus[row.Group.Name] > 0 && s.mayGoAlone(p, row) {
		return true
	}
	if u.spared {
		s.unsettled = true // who is elsewhere decides, too
		return false
	}
	return s.within(p, u.costs)
}

func (s *searcher) mayGoAlone(p *place, row *state.Row) bool {
	if s.spares(row) {
		return false
	}
	if !s.strict || !row.Started {
		return true
	}
	return s.within(p, s.costsOf(row))
}

// spares is whether the row's job spares it from this preemptor now.
func (s *searcher) spares(row *state.Row) bool {
	until, spared := row.Group.Job.ProtectedFrom(row.Alloc, s.f.req.Group.Job.Priority, s.f.req.Now)
	if until != 0 {
		s.recheck.At(until)
	}
	return spared
}

// costsOf is what evicting a row takes from strict budgets. It is good until it
// is asked for again.
func (s *searcher) costsOf(row *state.Row) protect.Charges {
	s.costs = s.costs[:0]
	for _, at := range s.f.snap.GroupBudgets(row.Group) {
		if s.f.snap.Budgets()[at].Strict {
			s.costs = append(s.costs, protect.Charge{Budget: at, Count: 1})
		}
	}
	return s.costs
}

// within is whether strict budgets have as much left as somebody costs.
func (s *searcher) within(p *place, costs protect.Charges) bool {
	for _, c := range costs {
		if c.Count > s.f.slacks[c.Budget] {
			s.stop(p.k, c.Budget)
			return false
		}
	}
	return true
}

// stop notes that a strict budget keeps somebody on a node.
func (s *searcher) stop(k, budget int32) {
	s.unsettled = true // what a budget has left changes elsewhere
	if at := s.f.snap.NextEvictionAt(budget, s.f.req.Now); at != 0 {
		s.recheck.At(at) // or by time alone
	}
	s.f.stoppedBy[k] = budget + 1
}

// missed is the outcome for a node where the candidates do not suffice.
func (s *searcher) missed(k int32, otherwise Outcome) Outcome {
	if s.strict && s.f.stoppedBy[k] != 0 {
		return Protected
	}
	return otherwise
}

// unit finds who goes with an allocation of a job that is evicted whole.
func (s *searcher) unit(key model.JobKey) *unit {
	if u := s.units[key]; u != nil {
		return u
	}
	u := &unit{}
	live := map[string]int{}
	for _, a := range s.f.snap.AppendJobAllocs(nil, key) {
		if !a.InCohort() {
			continue
		}
		row := s.rowOf(a)
		u.rows = append(u.rows, row)
		live[a.Group.Name]++
		u.spared = u.spared || s.f.req.Excluded[a] || int64(row.Priority) > s.ceiling || a.Job.NonPreemptible || s.spares(row) ||
			s.f.req.Rules != nil && s.f.req.Rules.IsAffinityTarget(AnyNode, row)
		if !s.strict || !a.Available() {
			continue
		}
		for _, c := range s.costsOf(row) {
			u.costs.Add(c.Budget, 1)
		}
	}
	slices.SortFunc(u.rows, func(a, b *state.Row) int { return s.f.req.TieOrder.Compare(a.Alloc.ID, b.Alloc.ID) })
	u.sortByNode()
	if job := s.f.snap.Job(key); job != nil {
		for group, n := range live {
			if n = job.SurplusInstances(group, n); n > 0 {
				if u.surplus == nil {
					u.surplus = map[string]int{}
				}
				u.surplus[group] = n
			}
		}
	}
	if s.units == nil {
		s.units = map[model.JobKey]*unit{}
	}
	s.units[key] = u
	return u
}

// rowOf is the row of a live allocation.
func (s *searcher) rowOf(a *model.Allocation) *state.Row {
	rows := s.f.snap.Chunk(int(a.NodePos) / state.ChunkSize).Rows(int(a.NodePos) % state.ChunkSize)
	return &rows[slices.IndexFunc(rows, func(row state.Row) bool { return row.Alloc == a })]
}

// sortByNode makes byNode.
func (u *unit) sortByNode() {
	u.byNode = slices.Grow(u.byNode[:0], len(u.rows))
	for at := range u.rows {
		u.byNode = append(u.byNode, int32(at))
	}
	slices.SortFunc(u.byNode, func(a, b int32) int {
		return cmp.Or(cmp.Compare(u.rows[a].Alloc.NodePos, u.rows[b].Alloc.NodePos), cmp.Compare(a, b))
	})
}

// on is the positions in rows of those on a node, ascending.
func (u *unit) on(pos int32) []int32 {
	find := func(pos int32) int {
		at, _ := slices.BinarySearchFunc(u.byNode, pos, func(at, pos int32) int {
			return cmp.Compare(u.rows[at].Alloc.NodePos, pos)
		})
		return at
	}
	return u.byNode[find(pos):find(pos+1)]
}

// appendCompany appends the rows that go with a row of a job that is evicted whole,
// itself first, then those on the same node, then those on others. Picks that went
// alone before it are not among them. A job may have as many rows as there are nodes,
// and an option on each: so those on others come in long pieces.
func (s *searcher) appendCompany(list []*state.Row, row *state.Row) []*state.Row {
	u := s.unit(row.Group.Job.Key())
	from := len(list)
	list = append(list, row)
	here := u.on(row.Alloc.NodePos)
	for _, at := range here {
		if u.rows[at].Alloc != row.Alloc {
			list = append(list, u.rows[at])
		}
	}
	next := int32(0)
	for _, at := range here {
		list = append(list, u.rows[next:at]...)
		next = at + 1
	}
	list = append(list, u.rows[next:]...)
	return s.dropAlone(u, list, from)
}

// dropAlone takes the picks that went alone out of a list, from a place on.
func (s *searcher) dropAlone(u *unit, list []*state.Row, from int) []*state.Row {
	if u.surplus == nil {
		return list // none did
	}
	return append(list[:from], slices.DeleteFunc(list[from:], s.wentAlone)...)
}

// appendConcerned appends of a row's company those that matter to option o: who is on
// its node, and who has to leave another for its sake.
func (s *searcher) appendConcerned(list []*state.Row, o int, row *state.Row) []*state.Row {
	key := row.Group.Job.Key()
	u := s.unit(key)
	p := &s.batch.places[o]
	from := len(list)
	for _, at := range u.on(s.f.options[p.option].pos) {
		list = append(list, u.rows[at])
	}
	for _, mate := range p.elsewhere() {
		if mate.Group.Job.AllOrNone && mate.Group.Job.Key() == key {
			list = append(list, mate)
		}
	}
	return s.dropAlone(u, list, from)
}

// wentAlone is whether a row is a pick that nobody went with.
func (s *searcher) wentAlone(row *state.Row) bool {
	return slices.ContainsFunc(s.picks, func(pick int32) bool {
		return pick != spared && s.batch.rows[pick].Alloc == row.Alloc && !slices.Contains(s.wholes, pick)
	})
}

// goesAlone is whether a row may be the next pick without company: its job is not
// evicted whole, or enough of its group stay.
func (s *searcher) goesAlone(row *state.Row) bool {
	if !row.Group.Job.AllOrNone {
		return true
	}
	left := s.unit(row.Group.Job.Key()).surplus[row.Group.Name]
	if left == 0 || s.spares(row) {
		return false
	}
	for _, pick := range s.picks {
		if g := s.batch.rows[pick].Group; g.Job.AllOrNone && g.Name == row.Group.Name && g.Job.Key() == row.Group.Job.Key() {
			left--
		}
	}
	return left > 0
}

// takeOff takes a pick off the node of option o, with those that go with it.
func (s *searcher) takeOff(o int, pick int32) {
	for _, row := range s.goesWith(o, pick) {
		s.trial.remove(row, s.marksOf(o, row))
	}
}

// putBack undoes takeOff.
func (s *searcher) putBack(o int, pick int32) {
	for _, row := range s.goesWith(o, pick) {
		s.trial.restore(row, s.marksOf(o, row))
	}
}

// goesWith is a pick and those that go with it, as far as option o is concerned. It is
// good until somebody asks again.
func (s *searcher) goesWith(o int, pick int32) []*state.Row {
	s.mates = s.mates[:0]
	if row := s.batch.rows[pick]; slices.Contains(s.wholes, pick) {
		s.mates = s.appendConcerned(s.mates, o, row)
	} else {
		s.mates = append(s.mates, row)
	}
	return s.mates
}

// evictGuarded is evict for a guarded node: it fills picks with the rows that it
// took, and blocked with those that strict budgets kept, or somebody who would
// have to go with them.
func (s *searcher) evictGuarded(o int, picks []int32, whole bool) (fits bool, err error) {
	p := &s.batch.places[o]
	s.picks, s.wholes, s.blocked, s.charged = s.picks[:0], s.wholes[:0], s.blocked[:0], s.charged[:0]
	s.newStamp()
	fits = s.trial.fits()
	for _, pick := range picks {
		if fits && !whole {
			break
		}
		if err := s.checkPick(o, pick); err != nil {
			return false, err
		}
		row := s.batch.rows[pick]
		if s.went(row) {
			continue
		}
		alone := s.goesAlone(row)
		if !s.charge(p.k, row, alone) {
			s.blocked = append(s.blocked, pick)
			continue
		}
		if !alone {
			s.wholes = append(s.wholes, pick)
		}
		s.takeOff(o, pick)
		s.picks = append(s.picks, pick)
		fits = s.trial.fits()
	}
	return fits, nil
}

// went is whether the job of a row went whole with a pick of the option.
func (s *searcher) went(row *state.Row) bool {
	if len(s.wholes) == 0 || !row.Group.Job.AllOrNone {
		return false
	}
	key := row.Group.Job.Key()
	return slices.ContainsFunc(s.wholes, func(pick int32) bool { return s.batch.rows[pick].Group.Job.Key() == key })
}

// charge protect.Charges a victim, and whoever goes with it, to strict budgets; false when
// one has not enough left, or when somebody may not go with it.
func (s *searcher) charge(k int32, row *state.Row, alone bool) bool {
	if !alone && s.unit(row.Group.Job.Key()).spared {
		s.unsettled = true
		return false
	}
	if !s.strict {
		return true
	}
	var costs protect.Charges
	switch {
	case !alone:
		s.mates = s.appendCompany(s.mates[:0], row)
		for _, mate := range s.mates {
			if !mate.Started {
				continue
			}
			for _, c := range s.costsOf(mate) {
				costs.Add(c.Budget, 1)
			}
		}
	case row.Started:
		costs = s.costsOf(row)
	}
	for _, c := range costs {
		if s.charged.Of(c.Budget)+c.Count > s.f.slacks[c.Budget] {
			s.stop(k, c.Budget)
			return false
		}
	}
	for _, c := range costs {
		s.charged.Add(c.Budget, c.Count)
	}
	return true
}

// spared stands among picks for one that turned out not to be needed.
const spared = -1

// spareGuarded is spare for a guarded node.
func (s *searcher) spareGuarded(o int) {
	for i := len(s.picks) - 2; i >= 0; i-- {
		pick := s.picks[i]
		whole := slices.Index(s.wholes, pick)
		if whole < 0 && s.went(s.batch.rows[pick]) {
			continue // of the job nothing stays
		}
		s.putBack(o, pick)
		switch {
		case !s.trial.fits():
			s.takeOff(o, pick)
		case whole >= 0:
			s.picks[i], s.wholes = spared, slices.Delete(s.wholes, whole, whole+1)
		default:
			s.picks[i] = spared
		}
	}
	s.picks = slices.DeleteFunc(s.picks, func(pick int32) bool { return pick == spared })
}

// askAgain notes that option o shall be asked about without the rows that strict
// budgets kept: the policy chooses among what is left, too.
func (s *searcher) askAgain(o int) {
	p := s.batch.places[o]
	l := &limits{}
	if p.limits != nil {
		*l = *p.limits
		l.excluded = slices.Clone(l.excluded)
	}
	for _, at := range s.blocked {
		l.excluded = append(l.excluded, s.batch.rows[at])
	}
	p.limits = l
	s.retries = append(s.retries, p)
}

// layOutAgain lays out the options that are to be asked about once more, as far as
// what is left of their candidates suffices.
func (s *searcher) layOutAgain() {
	list := s.retries
	s.retries = nil
	s.forget()
	for i := range list {
		p := &list[i]
		s.findAgain(p)
		s.lacks = s.f.watch.appendLacks(s.lacks[:0], p, &s.f.req.Group.Ask)
		s.narrow(p)
		n := 0
		if p.plain {
			n = s.reachPlain(p)
		} else {
			n = s.reach(p)
		}
		if n > 0 {
			s.addOption(p, n)
		}
	}
}

// findAgain collects the candidates of an option without those that strict budgets
// kept.
func (s *searcher) findAgain(p *place) {
	pos := s.f.req.Nodes[p.k]
	all := p.limits.all
	if s.delta == nil {
		p.separated = 0
		s.candidates(p, pos)
		all = slices.Clone(s.eligible)
	}
	s.eligible, s.mustLeave = s.eligible[:0], s.mustLeave[:0]
	for _, row := range all {
		if !slices.Contains(p.limits.excluded, row) {
			s.eligible, s.mustLeave = append(s.eligible, row), append(s.mustLeave, s.mustGo(pos, row))
		}
	}
}

// addCompany adds those who would go with candidates of a guarded node and are on
// others, so that the policy is asked whether they may.
func (s *searcher) addCompany(p *place) {
	here := s.f.req.Nodes[p.k]
	var asked []model.JobKey
	for _, row := range slices.Clone(s.eligible) {
		key := row.Group.Job.Key()
		if !row.Group.Job.AllOrNone || slices.Contains(asked, key) {
			continue
		}
		asked = append(asked, key)
		for _, mate := range s.unit(key).rows {
			if mate.Alloc.NodePos != here && !slices.Contains(s.eligible, mate) {
				s.insertEligible(mate, 0)
			}
		}
	}
}

// insertEligible adds a candidate where it belongs by priority and tie order.
func (s *searcher) insertEligible(row *state.Row, mark uint8) {
	at, _ := slices.BinarySearchFunc(s.eligible, row, func(a, b *state.Row) int {
		if a.Priority != b.Priority {
			return int(a.Priority) - int(b.Priority)
		}
		return s.f.req.TieOrder.Compare(a.Alloc.ID, b.Alloc.ID)
	})
	s.eligible, s.mustLeave = slices.Insert(s.eligible, at, row), slices.Insert(s.mustLeave, at, mark)
}

// keepUnits drops the candidates of a guarded node with which somebody would have
// to go whom the policy lets nobody evict, and whoever only goes along. asked are
// those that the policy was asked about, and eligible those it lets go.
func (s *searcher) keepUnits(p *place, asked []*state.Row) {
	here := s.f.req.Nodes[p.k]
	var broken []model.JobKey
	for _, row := range asked {
		if row.Group.Job.AllOrNone && !slices.Contains(s.eligible, row) {
			broken = append(broken, row.Group.Job.Key())
		}
	}
	kept := 0
	for i, row := range s.eligible {
		if row.Alloc.NodePos != here && !slices.Contains(p.elsewhere(), row) || slices.Contains(broken, row.Group.Job.Key()) {
			continue
		}
		s.eligible[kept], s.mustLeave[kept] = row, s.mustLeave[i]
		kept++
	}
	s.eligible, s.mustLeave = s.eligible[:kept], s.mustLeave[:kept]
}

// lookElsewhere finds out whether evictions on other nodes make a node possible
// that the rules forbid: everybody who keeps the group out must be one who may be
// evicted.
func (s *searcher) lookElsewhere(p *place, pos int32) bool {
	if !s.wide {
		return false
	}
	own := s.f.req.Group.Job.Key()
	allocs, ok := s.f.req.Rules.RemoteConflicts(pos)
	if !ok {
		return false
	}
	s.unsettled = true // who is elsewhere decides
	var rows []*state.Row
	for _, a := range allocs {
		row := s.rowOf(a)
		if int64(row.Priority) > s.ceiling || a.Job.NonPreemptible || a.Job.Key() == own || s.f.req.Rules.IsAffinityTarget(AnyNode, row) || !s.mayGo(p, row) {
			return false
		}
		rows = append(rows, row)
	}
	p.limits = &limits{elsewhere: rows}
	return true
}
