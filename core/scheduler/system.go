package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// placeSystem plans a system or sysbatch job: one instance of every group on every
// node that may take it. Nodes are decided one by one but examined together, with
// one scan and one search for victims per group.
func (a *attempt) placeSystem() error {
	groups, u := feasible.PlacementOrder(a.e.Job.Groups), &a.e.Unplaced
	for i, g := range groups {
		if err := a.placeSystemGroup(g, i+1 < len(groups)); err != nil {
			return err
		}
	}
	if u.Escaped {
		// Changes on other nodes may unblock the job as well, so the list is incomplete.
		u.BlockedNodes = nil
	}
	slices.Sort(u.BlockedNodes)
	u.BlockedNodes = slices.Compact(u.BlockedNodes)
	return nil
}

// placeSystemGroup places one group. more states whether groups follow that have
// to see its placements.
func (a *attempt) placeSystemGroup(g *model.Group, more bool) error {
	e := a.e
	checker := e.NodeChecker(g)
	have := a.r.System(g, checker)
	if g.Count == 0 {
		return nil
	}
	e.ReleaseStopped()
	s := systemGroup{Placer: e.NewSystemPlacer(g, checker), e: e, r: a.r, group: g, checker: checker, have: have}
	defer s.Close()
	preemptible, full := s.placeFitting()
	if len(preemptible) > 0 {
		rest, err := s.evictFor(preemptible)
		if err != nil {
			return err
		}
		full = append(full, rest...)
	}
	if len(full) > 0 {
		s.ExplainAmong(full)
		e.Fail(g, len(full), s.Explain())
		e.Unplaced.Escaped = e.Unplaced.Escaped || s.Rules.Binds()
		for _, pos := range full {
			e.Unplaced.BlockedNodes = append(e.Unplaced.BlockedNodes, e.State.Base.NodeAt(pos).ID)
		}
	}
	if more {
		s.apply()
	}
	return nil
}

// A systemGroup collects the placements of one group on all nodes. It is used once and
// closed by its creator.
type systemGroup struct {
	*placement.Placer
	e       *placement.Evaluation
	r       *reconcile.Reconciler
	group   *model.Group
	checker *feasible.NodeChecker
	have    *reconcile.Coverage

	placed, victims []*model.Allocation
	// The first appliedPlaced placements and appliedVictims victims are in the proposed
	// state. charged counts, by budget, the disruptions of the other victims.
	appliedPlaced, appliedVictims int
	charged                       map[int32]int
}

// placeFitting places on the nodes that have enough free capacity. It returns the other
// feasible nodes, in tie order: those on which evictions may help, and the rest. It
// costs one scan of all nodes. Nodes with an instance, or that wait for a retry, are in
// neither list.
func (s *systemGroup) placeFitting() (preemptible, full []int32) {
	k, snap := s.Ranker, s.e.State.Snapshot()
	k.ScanFull()
	for r, pos := range k.Order.ByRank {
		chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
		if chunk.Eligible()>>i&1 == 0 || !s.checker.Feasible(chunk, i) {
			continue
		}
		node := chunk.Node(i)
		last := s.have.Last(node.ID)
		switch status := k.Status(r); {
		case s.have.Covers(node.ID) || last != nil && s.r.RetriesLater(last):
		case status == rank.Fits && s.isAllowed(pos):
			device, _ := k.Device(pos, node)
			s.add(preempt.Choice{Pos: pos, Device: device, Score: k.Score(r)})
		case status == rank.NeedsPreempt:
			preemptible = append(preemptible, pos)
		default:
			full = append(full, pos)
		}
	}
	return preemptible, full
}

// isAllowed reports whether the rules allow a node after the placements on others.
func (s *systemGroup) isAllowed(pos int32) bool { return s.Rules == nil || s.Rules.Allows(pos) }

// evictFor evicts on full nodes and returns those without an option, in tie order. All
// are searched at once in the same state, since victims of one node seldom affect
// another one. If they do, the remaining nodes are searched again in the state that the
// others lead to. Each round places on at least one node or ends, so the rounds end.
func (s *systemGroup) evictFor(full []int32) (rest []int32, err error) {
	for {
		rest, clashed, err := s.evictOnce(full)
		if err != nil || !clashed {
			return rest, err
		}
		s.apply()
		if full = s.placeFreed(rest); len(full) == 0 {
			return nil, nil
		}
	}
}

// evictOnce searches all full nodes once. clashed is set if a node is in the rest
// because of victims of another one.
func (s *systemGroup) evictOnce(full []int32) (rest []int32, clashed bool, err error) {
	s.WaitingSince = s.e.Now
	for _, pos := range full {
		last := s.have.Last(s.e.State.Snapshot().NodeAt(pos).ID)
		s.WaitingSince = min(s.WaitingSince, s.r.MissingSince(last))
	}
	next := 0
	err = s.SearchEachNode(full, func(c preempt.Choice) {
		for full[next] != c.Pos {
			rest = append(rest, full[next])
			next++
		}
		next++
		clashes := s.clashes(c)
		clashed = clashed || clashes
		if clashes || !s.isAllowed(c.Pos) {
			rest = append(rest, c.Pos)
			return
		}
		s.add(c)
	})
	return append(rest, full[next:]...), clashed, err
}

// clashes reports whether an option evicts from a job that is evicted all-or-none and
// of which another node evicts already, or exceeds a strict budget together with the
// victims of other nodes. If it does not, its victims are charged. Options were
// searched in one state, so each alone is within the budgets.
func (s *systemGroup) clashes(c preempt.Choice) bool {
	snap := s.e.State.Snapshot()
	costs := map[int32]int{}
	for _, v := range c.Victims {
		if v.Job.AllOrNone && slices.ContainsFunc(s.victims[s.appliedVictims:], func(other *model.Allocation) bool {
			return other.Job.Key() == v.Job.Key()
		}) {
			return true
		}
		if snap.StrictBudgetCount() == 0 || !v.Available() {
			continue
		}
		for _, at := range snap.GroupBudgets(v.Group) {
			if snap.Budgets()[at].Strict {
				costs[at]++
			}
		}
	}
	for at, n := range costs {
		if s.charged[at]+n > snap.DisruptionsAllowed(at, s.e.Now) {
			return true
		}
	}
	for at, n := range costs {
		if s.charged == nil {
			s.charged = map[int32]int{}
		}
		s.charged[at] += n
	}
	return false
}

// apply moves placements and evictions so far into the proposed state. It costs one
// update of the proposed state for all nodes together.
func (s *systemGroup) apply() {
	s.Close() // the next search has to start over
	s.e.State.Apply(s.placed[s.appliedPlaced:], s.victims[s.appliedVictims:], model.DesiredEvict)
	s.appliedPlaced, s.appliedVictims, s.charged = len(s.placed), len(s.victims), nil
}

// placeFreed places on those of some nodes that now have enough free capacity, and
// returns the others. Only these nodes are ranked again.
func (s *systemGroup) placeFreed(nodes []int32) (full []int32) {
	k := s.Ranker
	for _, pos := range nodes {
		k.Update(pos)
		r := int(k.Order.RankOf[pos])
		if k.Status(r) != rank.Fits || !s.isAllowed(pos) {
			full = append(full, pos)
			continue
		}
		device, _ := k.Device(pos, s.e.State.Snapshot().NodeAt(pos))
		s.add(preempt.Choice{Pos: pos, Device: device, Score: k.Score(r)})
	}
	return full
}

// add adds an instance to the plan. The rules count it at once, since a rule may limit
// instances on other nodes.
func (s *systemGroup) add(c preempt.Choice) {
	m := s.have.NewInstance(s.e.State.Snapshot().NodeAt(c.Pos).ID)
	alloc := s.e.NewAllocation(s.group, m, c)
	s.e.Plan.Place(&proposal.Placement{Alloc: alloc, Victims: c.Victims, Policy: placement.PolicyID(c), Why: c.Why})
	s.e.CountEvictions(c.Victims)
	s.Count(alloc, 1)
	for _, v := range c.Victims {
		s.Count(v, -1)
	}
	s.placed, s.victims = append(s.placed, alloc), append(s.victims, c.Victims...)
}
