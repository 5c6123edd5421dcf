package bound

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
)

// maxLoads limits the combinations of instances of several groups. Beyond it, each group
// is bounded alone: an answer to all groups also answers each of them.
const maxLoads = 512

// Solve returns the minimum cost of a problem. After limit steps, about one for each
// victim that a bound reads, it returns a lower bound instead.
//
// It is a best-first branch and bound. A branch decides for some victims and cohorts
// whether they are evicted, and selects the domain. Its relaxation drops the budgets and
// divides the cost of a cohort between its members, which is a Lagrangian relaxation
// with fixed multipliers. The rest separates by node and is solved by dynamic
// programming over nodes; the cost on one node is a cover.
func Solve(p *Problem, limit int64) Result {
	size := 1
	for _, n := range p.Counts {
		if size *= n + 1; size > maxLoads {
			return solveAlone(p, limit)
		}
	}
	s := &search{table: table{problem: p, loads: newLoads(p.Counts), limit: limit}}
	for _, domain := range domains(p) {
		s.push(s.root(domain))
	}
	for s.queue.Len() > 0 {
		b := heap.Pop(&s.queue).(*branch)
		if b.lower == Infinite {
			break // so are all others
		}
		if !s.tighten(b) {
			return Result{Lower: min(b.lower, s.leastWaiting()), Cause: CauseSteps, Steps: s.steps}
		}
		switch {
		case b.lower == Infinite || b.lower > s.leastWaiting():
			s.push(b)
		case s.violation(b) == nil:
			return Result{Lower: b.lower, Exact: true, Answer: s.answer(b), Steps: s.steps}
		default:
			s.split(b, s.violation(b))
		}
	}
	return Result{Lower: Infinite, Exact: true, Steps: s.steps}
}

// solveAlone returns the largest bound of a single group.
func solveAlone(p *Problem, limit int64) Result {
	out := Result{}
	for g, n := range p.Counts {
		alone := *p
		alone.Counts = make([]int, len(p.Counts))
		alone.Counts[g] = min(n, maxLoads-1)
		r := Solve(&alone, limit/int64(len(p.Counts)))
		out.Steps += r.Steps
		out.Lower = max(out.Lower, r.Lower)
	}
	if out.Exact = out.Lower == Infinite; !out.Exact {
		out.Cause = CauseGroups
	}
	return out
}

// domains returns the domains to search, or one that stands for all nodes.
func domains(p *Problem) []int {
	if !p.OneDomain {
		return []int{-1}
	}
	var list []int
	for i := range p.Nodes {
		if d := p.Nodes[i].Domain; d >= 0 && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	return list
}

// search is a branch and bound.
type search struct {
	table
	queue branches
	made  int
}

// A branch is a part of the answers, and the largest proven bound on them.
type branch struct {
	number  int // in order of creation; breaks ties
	domain  int
	lower   int64
	cost    int64              // of the evictions decided so far
	victims []position         // evicted by decision, without members of cohorts
	states  map[int][]decision // by node, if any of its victims is decided
	cohorts []decision
	places  []*place // nodes that may receive instances
	origin  []int    // their positions in Problem.Nodes
	path    []int    // load by place of the relaxed answer
}

// push queues a branch.
func (s *search) push(b *branch) { heap.Push(&s.queue, b) }

// leastWaiting returns the least bound of the queued branches.
func (s *search) leastWaiting() int64 {
	if s.queue.Len() == 0 {
		return Infinite
	}
	return s.queue[0].lower
}

// root returns the branch of a domain, without decisions.
func (s *search) root(domain int) *branch {
	b := &branch{domain: domain, states: map[int][]decision{}, cohorts: make([]decision, len(s.problem.Cohorts))}
	for i := range s.problem.Nodes {
		n := &s.problem.Nodes[i]
		if s.problem.OneDomain && n.Domain != domain || !receives(n, s.problem.Counts) {
			continue
		}
		b.origin = append(b.origin, i)
		b.places = append(b.places, nil)
	}
	s.number(b)
	s.build(b, func(int) bool { return true })
	return b
}

func (s *search) number(b *branch) {
	b.number = s.made
	s.made++
}

// receives reports whether a node can receive an instance of a group with a positive
// count.
func receives(n *Node, counts []int) bool {
	for g, count := range counts {
		if count > 0 && len(n.Options[g]) > 0 && n.Limit[g] > 0 {
			return true
		}
	}
	return false
}

// build makes the places of changed nodes.
func (s *search) build(b *branch, changed func(node int) bool) {
	prices := s.prices(b)
	for at, node := range b.origin {
		if changed(node) {
			b.places[at] = newPlace(s.problem, node, b.state(s.problem, node), prices)
		}
	}
}

// state returns the decisions about the victims of a node, those about cohorts included.
func (b *branch) state(p *Problem, node int) []decision {
	victims := p.Nodes[node].Victims
	state := make([]decision, len(victims))
	copy(state, b.states[node])
	for v := range victims {
		if c := victims[v].Cohort; c >= 0 && b.cohorts[c] != undecided {
			state[v] = b.cohorts[c]
		}
	}
	return state
}

// prices returns the prices of victims. The cost of a cohort is divided between its
// members on nodes that may receive instances: evicting all of them costs as much as
// the cohort, and fewer cost less, so that the relaxation is a lower bound.
func (s *search) prices(b *branch) priceFunc {
	members := make([]int64, len(b.cohorts))
	if len(members) > 0 {
		for _, node := range b.origin {
			for v := range s.problem.Nodes[node].Victims {
				if c := s.problem.Nodes[node].Victims[v].Cohort; c >= 0 {
					members[c]++
				}
			}
		}
	}
	return func(node, victim int) int64 {
		v := &s.problem.Nodes[node].Victims[victim]
		if v.Cohort < 0 {
			return v.Cost
		}
		return s.problem.Cohorts[v.Cohort].Cost / members[v.Cohort] // rounded down: a bound
	}
}

// tighten solves the relaxation of a branch: it repeats the dynamic program until every
// cell of its answer is exact, or the bound exceeds that of another branch. It returns
// false if the search is cut off.
func (s *search) tighten(b *branch) bool {
	for _, p := range b.places {
		if p.cells == nil {
			s.fill(p)
		}
	}
	for {
		lower, path := s.assign(b.places)
		if lower == Infinite {
			b.lower = Infinite
			return true
		}
		b.lower, b.path = max(b.lower, b.cost+lower), path
		if b.lower > s.leastWaiting() {
			return true
		}
		refined := false
		for at, q := range path {
			if !b.places[at].cells[q].exact {
				s.refine(b.places[at], q)
				refined = true
			}
			if s.steps >= s.limit {
				return false
			}
		}
		if !refined {
			return true
		}
	}
}

// assign distributes all instances over places at minimum cost, by the current cells. It returns
// the load of each place.
func (s *search) assign(places []*place) (int64, []int) {
	all := len(s.loads.list)
	least := make([]int64, all)
	for i := 1; i < all; i++ {
		least[i] = Infinite
	}
	from := make([][]int16, len(places))
	for at, p := range places {
		next := slices.Clone(least)
		from[at] = make([]int16, all)
		for q := 1; q < all; q++ {
			cost := p.cells[q].lower
			if cost == Infinite {
				continue
			}
			for i := range all - q {
				if least[i] == Infinite || !s.loads.fits(i, q) {
					continue
				}
				if total := least[i] + cost; total < next[i+q] {
					next[i+q], from[at][i+q] = total, int16(q)
				}
			}
			s.steps += int64(all-q)/8 + 1
		}
		least = next
		s.steps++
	}
	if least[all-1] == Infinite {
		return Infinite, nil
	}
	path := make([]int, len(places))
	for at, left := len(places)-1, all-1; at >= 0; at-- {
		path[at] = int(from[at][left])
		left -= path[at]
	}
	return least[all-1], path
}

// A split is a decision to branch on: a cohort, or a victim of strict budgets.
type split struct {
	cohort int // negative: a victim
	victim position
}

// violation returns a constraint that the relaxed answer of a branch violates, or nil.
func (s *search) violation(b *branch) *split {
	charged := make([]int, len(s.problem.Budgets))
	for _, v := range s.allVictims(b) {
		for _, budget := range s.problem.Nodes[v.node].Victims[v.victim].Budgets {
			charged[budget]++
		}
	}
	for _, v := range s.relaxedVictims(b) {
		victim := &s.problem.Nodes[v.node].Victims[v.victim]
		if c := victim.Cohort; c >= 0 {
			return &split{cohort: c} // its other members are not evicted, or their cost is not counted
		}
		for _, budget := range victim.Budgets {
			if charged[budget] > s.problem.Budgets[budget] {
				return &split{cohort: -1, victim: v}
			}
		}
	}
	for budget, n := range charged {
		if n > s.problem.Budgets[budget] {
			return &split{cohort: -1, victim: position{-1, -1}} // by decisions alone: no answer
		}
	}
	return nil
}

// relaxedVictims returns the victims of the relaxed answer, without decided ones.
func (s *search) relaxedVictims(b *branch) (list []position) {
	for at, q := range b.path {
		for _, v := range b.places[at].cells[q].victims {
			list = append(list, position{b.origin[at], v})
		}
	}
	return list
}

// allVictims returns the victims of the relaxed answer and those that the branch decided.
func (s *search) allVictims(b *branch) []position {
	list := append(slices.Clone(b.victims), s.relaxedVictims(b)...)
	for node := range s.problem.Nodes {
		for v := range s.problem.Nodes[node].Victims {
			if c := s.problem.Nodes[node].Victims[v].Cohort; c >= 0 && b.cohorts[c] == evicted {
				list = append(list, position{node, v})
			}
		}
	}
	return list
}

// split replaces a branch by two: one evicts, the other one spares.
func (s *search) split(b *branch, at *split) {
	if at.cohort < 0 && at.victim.node < 0 {
		return
	}
	for _, d := range []decision{evicted, spared} {
		child := &branch{
			domain: b.domain, lower: b.lower, cost: b.cost, victims: slices.Clip(b.victims), origin: b.origin,
			cohorts: slices.Clone(b.cohorts), places: slices.Clone(b.places), states: make(map[int][]decision, len(b.states)+1),
		}
		maps.Copy(child.states, b.states)
		s.number(child)
		if at.cohort >= 0 {
			child.cohorts[at.cohort] = d
			if d == evicted {
				child.cost += s.problem.Cohorts[at.cohort].Cost
			}
			s.build(child, func(node int) bool { return s.hasMember(node, at.cohort) })
		} else {
			child.decide(s.problem, at.victim, d)
			s.build(child, func(node int) bool { return node == at.victim.node })
		}
		s.push(child)
	}
}

// decide records a decision about one victim.
func (b *branch) decide(p *Problem, v position, d decision) {
	state := make([]decision, len(p.Nodes[v.node].Victims))
	copy(state, b.states[v.node])
	state[v.victim] = d
	b.states[v.node] = state
	if d == evicted {
		b.victims = append(b.victims, v)
		b.cost += p.Nodes[v.node].Victims[v.victim].Cost
	}
}

func (s *search) hasMember(node, cohort int) bool {
	return slices.ContainsFunc(s.problem.Nodes[node].Victims, func(v Victim) bool { return v.Cohort == cohort })
}

// answer returns the answer of a branch that violates nothing.
func (s *search) answer(b *branch) *Answer {
	a := &Answer{Placed: map[string][]int{}}
	for at, q := range b.path {
		if q > 0 {
			a.Placed[b.places[at].ID] = s.loads.list[q]
		}
	}
	for _, v := range s.allVictims(b) {
		a.Victims = append(a.Victims, s.problem.Nodes[v.node].Victims[v.victim].ID)
	}
	slices.Sort(a.Victims)
	return a
}

// branches is a heap of branches by bound.
type branches []*branch

func (q branches) Len() int { return len(q) }

func (q branches) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].lower, q[j].lower), cmp.Compare(q[i].number, q[j].number)) < 0
}

func (q branches) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *branches) Push(b any)   { *q = append(*q, b.(*branch)) }

func (q *branches) Pop() any {
	old := *q
	b := old[len(old)-1]
	*q = old[:len(old)-1]
	return b
}
