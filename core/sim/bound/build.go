package bound

import (
	"slices"
	"sort"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/state"
)

// A builder translates a decision into a Problem. Candidates are the allocations that the
// rules of the host allow some policy to evict: those of other jobs with a lower priority,
// without protected ones; and those that the host may move, as if each had a place. Rules that Problem cannot express are dropped, which never
// raises the minimum, and recorded.
type builder struct {
	*Decision
	counts  []int
	costs   *Costs
	evicts  bool // the job may evict
	moves   bool // instances may be moved to make room for the job
	axes    axes
	checks  []*feasible.NodeChecker
	colo    colocation
	cohorts cohorts
	strict  map[int32]int // positions in Problem.Budgets, by budget
	problem *Problem
	dropped []string // rules that were dropped, ascending
}

// Build returns the problem of placing counts instances, by group, in the state in which the decision
// was made, and the rules that it does not contain. If there are none, an optimum of the
// problem is feasible.
func Build(d *Decision, counts []int, costs *Costs) (*Problem, []string) {
	return build(d, counts, costs, true)
}

// build returns the problem with or without the instances that the host may move.
func build(d *Decision, counts []int, costs *Costs, moves bool) (*Problem, []string) {
	b := &builder{
		Decision: d, counts: counts, costs: costs, problem: &Problem{Counts: counts},
		evicts: placement.MayPreempt(d.snap, d.Job), moves: moves && placement.MoveRate(d.snap, d.Job) != nil,
	}
	b.axes = newAxes(d.Job, counts, d.snap)
	for _, g := range d.Job.Groups {
		b.checks = append(b.checks, feasible.NewNodeChecker(g, d.snap.ClassCount()))
	}
	b.addBudgets()
	b.findCohorts()
	b.colocate()
	b.dropGroupRules()
	for pos := range int32(d.snap.ChunkCount() * state.ChunkSize) {
		if d.snap.NodeAt(pos) != nil {
			b.addNode(pos)
		}
	}
	sort.Strings(b.dropped)
	return b.problem, b.dropped
}

// drop records a rule that the problem does not contain.
func (b *builder) drop(rule string) {
	if !slices.Contains(b.dropped, rule) {
		b.dropped = append(b.dropped, rule)
	}
}

// dropGroupRules drops rules between instances on different nodes.
func (b *builder) dropGroupRules() {
	for i, g := range b.Job.Groups {
		if b.counts[i] == 0 {
			continue
		}
		if slices.ContainsFunc(g.Spread, func(s model.Spread) bool { return s.MaxSkew > 0 }) {
			b.drop("spread")
		}
		if slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator == model.OpDistinctProperty }) {
			b.drop("distinct_property")
		}
		if feasible.SpansNodes(g.Separate) {
			b.drop("separate")
		}
		for k, other := range b.Job.Groups {
			if k != i && b.counts[k] > 0 && matchesAny(g.Separate, other) {
				b.drop("separate")
			}
		}
	}
}

func matchesAny(terms []model.LabelTerm, g *model.Group) bool {
	return slices.ContainsFunc(terms, func(t model.LabelTerm) bool { return t.Matches(g.Labels) })
}

// addBudgets adds the strict budgets. The slack is the larger one of before and after the
// stops of the plan, because either may have been in force.
func (b *builder) addBudgets() {
	b.strict = map[int32]int{}
	for at, budget := range b.snap.Budgets() {
		if budget.Strict {
			b.strict[int32(at)] = len(b.problem.Budgets)
			slack := max(b.snap.DisruptionsAllowed(int32(at), b.Now), b.before.DisruptionsAllowed(int32(at), b.Now))
			b.problem.Budgets = append(b.problem.Budgets, max(0, slack))
		}
	}
}

// addNode adds a node if it can receive instances or holds members of cohorts.
func (b *builder) addNode(pos int32) {
	chunk, i := b.snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	node := chunk.Node(i)
	out := Node{
		ID: node.ID, Domain: b.colo.domain(node),
		Options: make([][][]int64, len(b.counts)), Limit: make([]int, len(b.counts)), Conflicts: make([][]int, len(b.counts)),
	}
	rows := chunk.Rows(i)
	positions := b.addVictims(&out, rows)
	open, inCohort := false, slices.ContainsFunc(out.Victims, func(v Victim) bool { return v.Cohort >= 0 })
	for at, g := range b.Job.Groups {
		if b.counts[at] > 0 && chunk.Eligible()>>i&1 == 1 && b.checks[at].Feasible(chunk, i) && b.colo.allows(at, node) && b.onNode(at, node) {
			b.addGroup(&out, g, node, rows, positions)
			open = open || out.Limit[at] > 0
		}
	}
	if !open && !inCohort {
		return
	}
	var scratch model.Vector
	free := b.snap.FreeCapacityFor(pos, b.Job.Key(), b.Job.Priority, b.Now, &scratch)
	out.Free = b.axes.free(node, &free)
	b.problem.Nodes = append(b.problem.Nodes, out)
}

// onNode reports whether the node may receive a group. Instances of per-node jobs belong
// to certain nodes, so that only those that received one are compared.
func (b *builder) onNode(group int, n *model.Node) bool {
	return !b.Job.Type.PerNode() || b.on[group][n.ID]
}

// addVictims adds the candidates of a node. It returns the position of each row among
// them; negative: it is not a candidate.
func (b *builder) addVictims(out *Node, rows []state.Row) []int {
	positions := make([]int, len(rows))
	for i := range rows {
		row := &rows[i]
		positions[i] = -1
		cohort, ok := b.cohortOf(row)
		if !ok {
			continue
		}
		positions[i] = len(out.Victims)
		v := Victim{ID: row.Alloc.ID, Frees: b.axes.frees(row.Alloc), Cohort: cohort, MustMove: !b.evictable(row.Alloc)}
		if cohort < 0 {
			v.Cost = b.costs.Of(row.Alloc, b.Now)
		}
		if row.Started && row.Alloc.Available() {
			for _, at := range b.snap.GroupBudgets(row.Group) {
				if budget, strict := b.strict[at]; strict {
					v.Budgets = append(v.Budgets, budget)
				}
			}
		}
		out.Victims = append(out.Victims, v)
	}
	return positions
}

// candidate reports whether the rules of the host allow some policy to evict an
// allocation, its cohort aside, or allow to move it. Either loses the same work.
func (b *builder) candidate(a *model.Allocation) bool { return b.evictable(a) || b.movable(a) }

// movable reports whether an allocation could be moved if another node had a place for it.
// Its budgets and those of the state after the stops may differ, as for strict budgets.
func (b *builder) movable(a *model.Allocation) bool {
	if !b.moves || a.Job.Key() == b.Job.Key() {
		return false
	}
	return b.snap.MoveObstacle(a, b.Job.Priority, b.Now) == "" || b.before.MoveObstacle(a, b.Job.Priority, b.Now) == ""
}

func (b *builder) evictable(a *model.Allocation) bool {
	if !b.evicts || a.Job.Priority >= b.Job.Priority || a.Job.NonPreemptible || a.Job.Key() == b.Job.Key() || a.LostWith(b.snap.Node(a.NodeID), b.Now) {
		return false
	}
	_, spared := a.Job.ProtectedFrom(a, b.Job.Priority, b.Now)
	return !spared
}

// addGroup adds the options of a group on a node, unless an allocation that cannot be
// evicted excludes them.
func (b *builder) addGroup(out *Node, g *model.Group, n *model.Node, rows []state.Row, positions []int) {
	at := g.Position
	limit := b.counts[at]
	if b.Job.Type.PerNode() || feasible.DistinctHosts(g) || feasible.Repels(g, g, n) {
		limit = 1
	}
	var conflicts []int
	for i := range rows {
		other := rows[i].Group
		if other.Job.Key() == b.Job.Key() && other.Name == g.Name && feasible.DistinctHosts(g) {
			return
		}
		if other.Job.Namespace != b.Job.Namespace || !feasible.Repels(g, other, n) && !feasible.Repels(other, g, n) {
			continue
		}
		if positions[i] < 0 {
			return
		}
		conflicts = append(conflicts, positions[i])
	}
	for _, choice := range n.DeviceChoices(&g.Ask) {
		out.Options[at] = append(out.Options[at], b.axes.ask(g, n, choice))
	}
	out.Limit[at], out.Conflicts[at] = limit, conflicts
}
