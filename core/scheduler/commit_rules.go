package scheduler

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
)

// CommitRules are the rules between allocations as the applier asks them again:
// what a worker found on its snapshot another worker's plan may have changed
// since. The zero value is ready, for one applier.
type CommitRules struct{ scratch Scheduler }

var _ planner.PlacementVerifier = (*CommitRules)(nil)

// StartPlan begins to check a plan. Jobs without rules, which are most, cost a look
// at their groups.
func (c *CommitRules) StartPlan(snap *state.Snapshot, plan *model.Plan) planner.PlacementCheck {
	job := snap.Job(plan.Job)
	if job == nil || !slices.ContainsFunc(job.Groups, func(g *model.Group) bool { return ruled(snap, g) }) {
		return nil
	}
	s := &c.scratch
	s.tallies.reclaim()
	s.allocs = snap.AppendJobAllocs(s.allocs[:0], plan.Job)
	r := &run{s: s, base: snap, proposed: snap, job: job}
	r.sortAllocs()
	check := &ruleCheck{run: r, plan: plan, rules: make([]*groupRules, len(job.Groups)), gone: map[string]bool{}}
	for i, g := range job.Groups {
		if ruled(snap, g) {
			check.rules[i] = r.newRules(g).ready()
		}
	}
	// Everything is counted. What is idle must keep no state alive.
	r.byGroup = nil
	clear(s.allocs)
	return check
}

// ruled is whether some rule, of its own or of others, may keep the group off a
// node because of what runs elsewhere or there.
func ruled(snap *state.Snapshot, g *model.Group) bool {
	if len(g.Colocate)+len(g.Separate) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator.CountsAllocations() }) ||
		slices.ContainsFunc(g.Spread, func(s model.Spread) bool { return s.MaxSkew > 0 }) {
		return true
	}
	if len(g.Labels) == 0 {
		return false
	}
	for key := range snap.JobsSeparatedFrom(g.Labels) {
		if key.Namespace == g.Job.Namespace {
			return true
		}
	}
	return false
}

// ruleCheck plays a plan again, in the order in which the scheduler made it, on
// the state that is now. A rule concerns the moment at which something is
// placed, and what is placed or leaves later may not be held against it: so
// looking at the end alone would refuse plans that hold. With the order, a plan
// made on this very state finds what it found when it was made.
type ruleCheck struct {
	run   *run
	plan  *model.Plan
	rules []*groupRules   // by the group's position in the job; nil: none
	gone  map[string]bool // what has left already
	steps []ruleStep
	moves []ruleMove // what was counted, for undo
}

// ruleStep is what leaves and then, when it is not nil, what is placed.
type ruleStep struct {
	position int // of the task group; -1: before all
	leaves   []*model.Allocation
	place    *model.Allocation
}

// places is how many instances the step places: what only leaves goes first.
func (s *ruleStep) places() int {
	if s.place == nil {
		return 0
	}
	return 1
}

// ruleMove is an allocation that came (1) or left (-1).
type ruleMove struct {
	alloc *model.Allocation
	by    int
}

// Add plays commit groups behind those added before.
func (k *ruleCheck) Add(groups []int) (nodeID, reason string) {
	k.steps = k.steps[:0]
	for _, i := range groups {
		k.addSteps(&k.plan.Groups[i])
	}
	// Commit groups are by node or by what is bound together; the scheduler went
	// from task group to task group.
	slices.SortStableFunc(k.steps, func(a, b ruleStep) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.places(), b.places()))
	})
	mark := len(k.moves)
	for rest := k.steps; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].position == rest[0].position {
			n++
		}
		if nodeID, why := k.play(rest[:n]); why != "" {
			k.undo(mark)
			return nodeID, why + " no longer holds"
		}
		rest = rest[n:]
	}
	return "", ""
}

// play takes the steps of one task group. In what order a scheduler went from
// node to node the plan of a system job does not tell, and for a skew it
// matters; so what is forbidden is tried again behind the others. Whatever the
// rules allow in some order, they allow in this one: a placement that they allow
// does not take from the others what it allows them.
func (k *ruleCheck) play(steps []ruleStep) (nodeID, why string) {
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

// addSteps takes a commit group apart.
func (k *ruleCheck) addSteps(g *model.CommitGroup) {
	stopped := map[instanceKey]*model.Allocation{}
	for i := range g.Stops {
		if a := k.run.base.Alloc(g.Stops[i].AllocID); a != nil {
			stopped[keyOf(a)] = a
		}
	}
	victims := map[string][]*model.Allocation{}
	for i := range g.Evictions {
		if a := k.run.base.Alloc(g.Evictions[i].AllocID); a != nil {
			victims[g.Evictions[i].By] = append(victims[g.Evictions[i].By], a)
		}
	}
	replaced := map[string]bool{}
	for _, p := range g.Placements {
		step := ruleStep{position: k.position(p), leaves: victims[p.ID], place: p}
		if old := stopped[keyOf(p)]; old != nil {
			replaced[old.ID] = true
			step.leaves = append(step.leaves, old)
		}
		k.steps = append(k.steps, step)
	}
	for i := range g.Stops {
		if a := k.run.base.Alloc(g.Stops[i].AllocID); a != nil && !replaced[a.ID] {
			k.steps = append(k.steps, ruleStep{position: k.stopsAt(a), leaves: []*model.Allocation{a}})
		}
	}
}

// instanceKey is what a placement and the allocation that it replaces have in
// common.
type instanceKey struct {
	group string
	index int
}

func keyOf(a *model.Allocation) instanceKey { return instanceKey{a.Group.Name, a.Index} }

// position is that of an allocation's group in the job as it is now; -1 when
// the job no longer has it.
func (k *ruleCheck) position(a *model.Allocation) int {
	if g := k.run.job.Group(a.Group.Name); g != nil {
		return g.Position
	}
	return -1
}

// stopsAt is the group before which a scheduler stops what nothing replaces: for
// a job that runs on every node its own, else the first.
func (k *ruleCheck) stopsAt(a *model.Allocation) int {
	if k.run.job.Type.PerNode() {
		return k.position(a)
	}
	return -1
}

// step says which rule forbids a step; "" when none does, and it counts.
func (k *ruleCheck) step(s *ruleStep) string {
	for _, a := range s.leaves {
		if a.Live() && !k.gone[a.ID] {
			k.gone[a.ID] = true
			k.move(a, -1)
		}
	}
	if s.place == nil {
		return ""
	}
	pos, ok := k.run.base.Position(s.place.NodeID)
	if !ok {
		return ""
	}
	if why := k.forbids(s.position, pos); why != "" {
		return why
	}
	// The plan may be of an older state, with other positions.
	a := *s.place
	a.Job, a.Group, a.NodePos = k.run.job, k.run.job.Groups[s.position], pos
	k.move(&a, 1)
	return ""
}

func (k *ruleCheck) forbids(position int, pos int32) string {
	u := k.rules[position]
	if u == nil {
		return ""
	}
	if why := u.ruledOutBy(pos, k.run.base.NodeAt(pos)); why != "" {
		return why
	}
	if u.sep.apart.at(pos) > 0 {
		return "separate from allocations on the node"
	}
	return ""
}

// move lets every count follow an allocation.
func (k *ruleCheck) move(a *model.Allocation, by int) {
	k.moves = append(k.moves, ruleMove{a, by})
	k.count(a, by)
}

func (k *ruleCheck) count(a *model.Allocation, by int) {
	for _, u := range k.rules {
		u.count(a, by)
	}
	for _, s := range k.run.separations {
		s.count(a, by)
	}
}

// undo takes back what was counted since moves had this length.
func (k *ruleCheck) undo(length int) {
	for i := len(k.moves) - 1; i >= length; i-- {
		m := k.moves[i]
		k.count(m.alloc, -m.by)
		delete(k.gone, m.alloc.ID)
	}
	k.moves = k.moves[:length]
}
