package feasible

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// A Verifier checks the rules of placements again when a plan is committed, since
// another plan may have been committed in between. The zero value is
// ready. It must be called by one applier at a time.
type Verifier struct {
	counters CounterPool
	allocs   []*model.Allocation
	byGroup  [][]*model.Allocation
}

var _ planner.PlacementVerifier = (*Verifier)(nil)

// StartPlan starts the check of a plan. It returns nil if no rule concerns the plan's
// job, which is the usual case and costs one look at its groups.
func (v *Verifier) StartPlan(snap *state.Snapshot, plan *model.Plan) planner.PlacementCheck {
	job := snap.Job(plan.Job)
	if job == nil || !slices.ContainsFunc(job.Groups, func(g *model.Group) bool { return state.HasPlacementRules(&snap.View, g) }) {
		return nil
	}
	v.counters.Reclaim()
	v.allocs = snap.AppendJobAllocs(v.allocs[:0], plan.Job)
	v.byGroup = GroupAllocs(v.byGroup, job, v.allocs)
	noPreemption := proposal.NoPreemption()
	x := NewContext(proposal.NewState(snap, 0), v.byGroup, &noPreemption, &v.counters)
	k := &verification{ctx: x, snap: snap, job: job, plan: plan, rules: make([]*Rules, len(job.Groups)), removed: map[string]bool{}}
	k.turns = make([]int, len(job.Groups))
	for turn, g := range PlacementOrder(job.Groups) {
		k.turns[g.Position] = turn
	}
	for i, g := range job.Groups {
		if state.HasPlacementRules(&snap.View, g) {
			k.rules[i] = NewRules(x, g).Prepare()
		}
	}
	// Everything is counted. An idle verifier must not keep a snapshot alive.
	x.Allocs = nil
	clear(v.allocs)
	clear(v.byGroup)
	return k
}

// A verification replays a plan on the current state in the order in which the
// scheduler made it. A rule concerns the moment of a placement: checking only the
// final state would reject valid plans, because later placements and removals
// would count. Replayed on the state that it was made from, a plan always holds.
type verification struct {
	ctx     *Context
	snap    *state.Snapshot
	job     *model.Job
	plan    *model.Plan
	rules   []*Rules        // by the group's position in the job; nil: none
	turns   []int           // when the scheduler places a group, by its position
	removed map[string]bool // IDs of allocations that were removed already
	steps   []step          // scratch of Add
	moves   []move          // counted so far, for undo
}

// A step removes allocations and then, unless place is nil, places one.
type step struct {
	position int // of the task group; -1: before all groups
	remove   []*model.Allocation
	place    *model.Allocation
}

// placements returns the number of placements: steps that only remove come first.
func (s *step) placements() int {
	if s.place == nil {
		return 0
	}
	return 1
}

// A move is an allocation that was placed (1) or removed (-1).
type move struct {
	alloc *model.Allocation
	by    int
}

// Add replays commit groups after those added before. It returns the first
// violation, after undoing the groups, or "" if all rules hold.
func (k *verification) Add(groups []int) (nodeID, reason string) {
	k.steps = k.steps[:0]
	for _, i := range groups {
		k.addSteps(&k.plan.Groups[i])
	}
	// Commit groups are per node or per bound set; the scheduler proceeded by task group.
	slices.SortStableFunc(k.steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(k.turn(&a), k.turn(&b)), cmp.Compare(a.placements(), b.placements()))
	})
	mark := len(k.moves)
	for rest := k.steps; len(rest) > 0; {
		n := 1
		for n < len(rest) && k.turn(&rest[n]) == k.turn(&rest[0]) {
			n++
		}
		if nodeID, why := k.replay(rest[:n]); why != "" {
			k.undo(mark)
			return nodeID, why + " no longer holds"
		}
		rest = rest[n:]
	}
	return "", ""
}

// turn orders steps as the scheduler proceeded: by task group. The groups of a gang have an
// order of their own, which is that of the plan.
func (k *verification) turn(s *step) int {
	switch {
	case k.job.AllAtOnce:
		return 0
	case s.position < 0:
		return s.position
	}
	return k.turns[s.position]
}

// replay replays the steps of one task group, or of all groups of a gang. The plan of a
// system job does not record the order of nodes, which matters for MaxSkew, so forbidden
// steps are retried after the others. If some order is valid, this one is: an allowed
// placement never makes another allowed one forbidden.
func (k *verification) replay(steps []step) (nodeID, why string) {
	for len(steps) > 0 {
		left := steps[:0]
		nodeID, why = "", ""
		for _, s := range steps {
			if reason := k.step(&s); reason != "" {
				if why == "" {
					nodeID, why = s.place.NodeID, reason
				}
				left = append(left, s)
			}
		}
		if len(left) == len(steps) {
			return nodeID, why
		}
		steps = left
	}
	return "", ""
}

// addSteps splits a commit group into steps.
func (k *verification) addSteps(g *model.CommitGroup) {
	stopped := map[instanceKey]*model.Allocation{}
	for i := range g.Stops {
		if a := k.snap.Alloc(g.Stops[i].AllocID); a != nil {
			stopped[keyOf(a)] = a
		}
	}
	victims := map[string][]*model.Allocation{}
	for i := range g.Evictions {
		if a := k.snap.Alloc(g.Evictions[i].AllocID); a != nil {
			victims[g.Evictions[i].By] = append(victims[g.Evictions[i].By], a)
		}
	}
	replaced := map[string]bool{}
	for _, p := range g.Placements {
		if p.MovedFrom != "" {
			continue // of another job; no rules apply to what is moved
		}
		s := step{position: k.position(p), remove: victims[p.ID], place: p}
		if old := stopped[keyOf(p)]; old != nil {
			replaced[old.ID] = true
			s.remove = append(s.remove, old)
		}
		k.steps = append(k.steps, s)
	}
	for i := range g.Stops {
		if a := k.snap.Alloc(g.Stops[i].AllocID); a != nil && !replaced[a.ID] {
			k.steps = append(k.steps, step{position: k.stopPosition(a), remove: []*model.Allocation{a}})
		}
	}
}

// An instanceKey is equal for a placement and the allocation that it replaces.
type instanceKey struct {
	group string
	index int
}

func keyOf(a *model.Allocation) instanceKey { return instanceKey{a.Group.Name, a.Index} }

// position returns the position of an allocation's group in the current job, or -1
// if the job no longer has it.
func (k *verification) position(a *model.Allocation) int {
	if g := k.job.Group(a.Group.Name); g != nil {
		return g.Position
	}
	return -1
}

// stopPosition returns the group before which the scheduler stops an allocation
// that nothing replaces: its own group for a system job, else the first one.
func (k *verification) stopPosition(a *model.Allocation) int {
	if k.job.Type.PerNode() {
		return k.position(a)
	}
	return -1
}

// step returns the rule that forbids a step. If there is none, the step is counted
// and step returns "".
func (k *verification) step(s *step) string {
	for _, a := range s.remove {
		if a.Live() && !k.removed[a.ID] {
			k.removed[a.ID] = true
			k.move(a, -1)
		}
	}
	if s.place == nil {
		return ""
	}
	pos, ok := k.snap.Position(s.place.NodeID)
	if !ok {
		return ""
	}
	if why := k.violation(s.position, pos); why != "" {
		return why
	}
	// The plan may stem from an older state with other positions.
	a := *s.place
	a.Job, a.Group, a.NodePos = k.job, k.job.Groups[s.position], pos
	k.move(&a, 1)
	return ""
}

func (k *verification) violation(position int, pos int32) string {
	r := k.rules[position]
	if r == nil {
		return ""
	}
	if why := r.Violation(pos, k.snap.NodeAt(pos)); why != "" {
		return why
	}
	if r.anti.others.at(pos) > 0 {
		return "separate from allocations on the node"
	}
	return ""
}

func (k *verification) move(a *model.Allocation, by int) {
	k.moves = append(k.moves, move{a, by})
	k.count(a, by)
}

func (k *verification) count(a *model.Allocation, by int) {
	for _, r := range k.rules {
		r.Count(a, by)
	}
	k.ctx.Count(a, by)
}

// undo reverts the moves counted since there were length of them.
func (k *verification) undo(length int) {
	for i := len(k.moves) - 1; i >= length; i-- {
		m := k.moves[i]
		k.count(m.alloc, -m.by)
		delete(k.removed, m.alloc.ID)
	}
	k.moves = k.moves[:length]
}
