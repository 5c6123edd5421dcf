package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
)

// nodePlan determines which nodes of a search are evaluated and which share the result
// of another one.
type nodePlan struct {
	leader     []int32 // by slot: the slot of the node that provides the result, mostly its own
	distinct   []int32 // slots that are their own leader, ascending
	evaluating []int32 // slots being evaluated, ascending
	own        []int32 // slots of nodes with allocations of the preemptor's job, ascending
}

// planNodes finds the distinct nodes of the search.
func (f *Finder) planNodes() {
	s, p := &f.search, &f.plan
	n := len(s.req.Nodes)
	p.distinct, p.leader = p.distinct[:0], scratch.Sized(p.leader, n)
	if !s.traits.sharesAcrossNodes(&s.req) || f.classes.SkipSearch() {
		for slot := range int32(n) {
			p.leader[slot] = slot
			p.distinct = append(p.distinct, slot)
		}
		return
	}
	f.classes.Start(s.scope.Snap, s.traits.relocates)
	p.findOwn(s, &f.index)
	own := p.own
	for k, pos := range s.req.Nodes {
		slot := int32(k)
		leader := slot
		if len(own) > 0 && own[0] == slot {
			own = own[1:] // its own allocations are not candidates: other nodes of the class differ
		} else {
			leader = f.leaderOf(slot, pos)
		}
		if p.leader[slot] = leader; leader == slot {
			p.distinct = append(p.distinct, slot)
		}
	}
	if n >= blockNodes {
		f.classes.RecordUse(n, len(p.distinct))
	}
}

// findOwn finds the nodes with allocations of the preemptor's job.
func (p *nodePlan) findOwn(s *search, index *prune.NodeIndex) {
	p.own = p.own[:0]
	for _, a := range index.JobAllocs(s.scope.Snap, s.req.Group.Job.Key()) {
		if !a.Live() {
			continue
		}
		if slot, ok := index.Slot(s.scope.Snap, a.NodePos); ok {
			p.own = append(p.own, slot)
		}
	}
	slices.Sort(p.own)
	p.own = slices.Compact(p.own)
}

// leaderOf returns the slot of the first node in the search of the same class as the one
// at slot. It returns slot itself if there is none, or if the result depends on more than
// the class.
func (f *Finder) leaderOf(slot, pos int32) int32 {
	s := &f.search
	chunk, i := s.scope.Snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	if (chunk.HasEvictionRules()|chunk.HasClaims())>>i&1 == 1 {
		return slot
	}
	if rules := s.req.Rules; rules != nil && (!rules.Allows(pos) || rules.HasSeparatedRows(pos)) {
		return slot
	}
	return f.classes.First(s.scope.Snap, slot, pos)
}

// copyResults copies the results of leaders to the nodes that were not evaluated.
func (p *nodePlan) copyResults(s *search) {
	if len(p.distinct) == len(p.leader) {
		return
	}
	for slot, leader := range p.leader {
		if int(leader) == slot {
			continue
		}
		s.outcomes[slot], s.reach[slot] = s.outcomes[leader], s.reach[leader]
		if s.scope.Strict {
			s.scope.Blocking[slot] = s.scope.Blocking[leader]
		}
		// Classes are used for requests without devices only: one option a node.
		from, to := &s.options[s.first[leader]], &s.options[s.first[slot]]
		if to.feasible = from.feasible; to.feasible {
			from.shared = true
			to.solution = from.solution
		}
	}
}

// markInfeasible marks the nodes on which the group would not fit with everything evicted
// that its priority allows, if the search is large enough and a full evaluation of such a
// node would find nothing else.
func (f *Finder) markInfeasible() {
	s := &f.search
	t := &s.traits
	s.reclaimable.Reset()
	s.ownBelow = true
	if !t.fast || t.budgetsFirst || s.scope.Strict || len(f.plan.distinct) < blockNodes {
		return
	}
	s.reclaimable.Mark(s.scope.Snap, s.scope.Ceiling, s.inputs.Dimensions.Len(), &s.req.Group.Ask)
	// The columns contain the allocations of an earlier version of the preemptor's job,
	// which are never evicted for it.
	s.ownBelow = false
	for _, a := range f.index.JobAllocs(s.scope.Snap, s.req.Group.Job.Key()) {
		if int64(a.Job.Priority) <= s.scope.Ceiling && a.Live() {
			s.ownBelow = true
			s.reclaimable.Unmark(a.NodePos)
		}
	}
}
