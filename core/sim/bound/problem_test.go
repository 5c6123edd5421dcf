package bound

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// randomProblem returns a problem that brute force can solve.
func randomProblem(r *rand.Rand) *Problem {
	dims, groups := 1+r.IntN(3), 1+r.IntN(2)
	p := &Problem{OneDomain: r.IntN(3) == 0}
	for range groups {
		p.Counts = append(p.Counts, 1+r.IntN(3-groups+1))
	}
	for range r.IntN(3) {
		p.Cohorts = append(p.Cohorts, Cohort{Cost: r.Int64N(40)})
	}
	for range r.IntN(3) {
		p.Budgets = append(p.Budgets, r.IntN(3))
	}
	amounts := func(most int64) []int64 {
		out := make([]int64, dims)
		for d := range out {
			out[d] = r.Int64N(most + 1)
		}
		return out
	}
	for i := range 1 + r.IntN(4) {
		n := Node{ID: fmt.Sprint("n", i), Free: amounts(3), Domain: r.IntN(3) - 1}
		if r.IntN(6) == 0 {
			n.Free[0] = -2
		}
		for v := range r.IntN(4) {
			victim := Victim{ID: fmt.Sprintf("n%d-v%d", i, v), Frees: amounts(4), Cost: r.Int64N(30), Cohort: -1}
			if len(p.Cohorts) > 0 && r.IntN(3) == 0 {
				victim.Cohort, victim.Cost = r.IntN(len(p.Cohorts)), 0
			}
			for b := range p.Budgets {
				if r.IntN(2) == 0 {
					victim.Budgets = append(victim.Budgets, b)
				}
			}
			n.Victims = append(n.Victims, victim)
		}
		for range p.Counts {
			var options [][]int64
			for range min(2, r.IntN(4)) {
				options = append(options, amounts(4))
			}
			var conflicts []int
			if len(n.Victims) > 0 && r.IntN(4) == 0 {
				conflicts = []int{r.IntN(len(n.Victims))}
			}
			n.Options, n.Limit, n.Conflicts = append(n.Options, options), append(n.Limit, 1+r.IntN(3)), append(n.Conflicts, conflicts)
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

// bruteForce tries every set of victims and every distribution of the instances.
func bruteForce(p *Problem) int64 {
	var all []position
	for n := range p.Nodes {
		for v := range p.Nodes[n].Victims {
			all = append(all, position{n, v})
		}
	}
	best := int64(Infinite)
	for set := range 1 << len(all) {
		gone := map[position]bool{}
		for i, v := range all {
			if set>>i&1 == 1 {
				gone[v] = true
			}
		}
		if cost, ok := costOf(p, all, gone); ok && cost < best && placeable(p, gone) {
			best = cost
		}
	}
	return best
}

// costOf returns the cost of a set of victims, and whether it respects cohorts and budgets.
func costOf(p *Problem, all []position, gone map[position]bool) (cost int64, ok bool) {
	members, charged := make([]int, len(p.Cohorts)), make([]int, len(p.Budgets))
	lost := make([]int, len(p.Cohorts))
	for _, at := range all {
		v := p.Nodes[at.node].Victims[at.victim]
		if v.Cohort >= 0 {
			members[v.Cohort]++
		}
		if !gone[at] {
			continue
		}
		if v.Cohort >= 0 {
			lost[v.Cohort]++
		}
		cost += v.Cost
		for _, b := range v.Budgets {
			if charged[b]++; charged[b] > p.Budgets[b] {
				return 0, false
			}
		}
	}
	for c := range members {
		if lost[c] > 0 {
			cost += p.Cohorts[c].Cost
		}
		if lost[c] > 0 && lost[c] < members[c] {
			return 0, false
		}
	}
	return cost, true
}

// placeable reports whether all instances fit if the victims are gone.
func placeable(p *Problem, gone map[position]bool) bool {
	var groups []int // of each instance
	for g, n := range p.Counts {
		for range n {
			groups = append(groups, g)
		}
	}
	used := make([][]int64, len(p.Nodes))
	count := make([][]int, len(p.Nodes))
	for n := range p.Nodes {
		used[n], count[n] = make([]int64, len(p.Nodes[n].Free)), make([]int, len(p.Counts))
	}
	var try func(i, domain int) bool
	try = func(i, domain int) bool {
		if i == len(groups) {
			return true
		}
		g := groups[i]
		for n := range p.Nodes {
			node := &p.Nodes[n]
			if p.OneDomain && (node.Domain < 0 || domain >= 0 && node.Domain != domain) || count[n][g] == node.Limit[g] ||
				slices.ContainsFunc(node.Conflicts[g], func(v int) bool { return !gone[position{n, v}] }) {
				continue
			}
			for _, option := range node.Options[g] {
				fits := true
				for d, ask := range option {
					used[n][d] += ask
				}
				for d := range option {
					free := node.Free[d]
					for v := range node.Victims {
						if gone[position{n, v}] {
							free += node.Victims[v].Frees[d]
						}
					}
					fits = fits && (used[n][d] == 0 || used[n][d] <= free)
				}
				count[n][g]++
				next := domain
				if p.OneDomain {
					next = node.Domain
				}
				found := fits && try(i+1, next)
				count[n][g]--
				for d, ask := range option {
					used[n][d] -= ask
				}
				if found {
					return true
				}
			}
		}
		return false
	}
	return try(0, -1)
}

func TestSolve_EqualsBruteForce(t *testing.T) {
	t.Parallel()
	finite, evicting := 0, 0
	for seed := range uint64(soak.Count(1500, 20_000)) {
		p := randomProblem(rand.New(rand.NewPCG(seed, 1)))
		want, got := bruteForce(p), Solve(p, 1<<40)
		if got.Lower != want || !got.Exact {
			t.Fatalf("seed %d: %d (exact %v), brute force %d\n%+v", seed, got.Lower, got.Exact, want, p)
		}
		if want == Infinite {
			continue
		}
		finite++
		if cost := verify(t, seed, p, got.Answer); cost != want {
			t.Fatalf("seed %d: the answer costs %d, reported %d", seed, cost, want)
		}
		if len(got.Answer.Victims) > 0 {
			evicting++
		}
		cut := Solve(p, int64(seed%60))
		if cut.Lower > want || cut.Exact && cut.Lower != want {
			t.Fatalf("seed %d: cut off at %d steps: %d (exact %v), minimum %d", seed, seed%60, cut.Lower, cut.Exact, want)
		}
	}
	if few := soak.Count(100, 1000); finite < few || evicting < few/2 {
		t.Errorf("%d problems have an answer, %d of them evict: too few", finite, evicting)
	}
}

// verify checks an answer and returns its cost.
func verify(t *testing.T, seed uint64, p *Problem, a *Answer) int64 {
	t.Helper()
	var all []position
	gone := map[position]bool{}
	for n := range p.Nodes {
		for v := range p.Nodes[n].Victims {
			all = append(all, position{n, v})
			gone[position{n, v}] = slices.Contains(a.Victims, p.Nodes[n].Victims[v].ID)
		}
	}
	fixed := *p
	fixed.Nodes = slices.Clone(p.Nodes)
	placed := make([]int, len(p.Counts))
	for n := range fixed.Nodes {
		limit := a.Placed[p.Nodes[n].ID]
		if limit == nil {
			limit = make([]int, len(p.Counts))
		}
		fixed.Nodes[n].Limit = make([]int, len(limit))
		for g := range limit {
			placed[g] += limit[g]
			fixed.Nodes[n].Limit[g] = min(limit[g], p.Nodes[n].Limit[g])
		}
	}
	cost, ok := costOf(p, all, gone)
	if !ok || !slices.Equal(placed, p.Counts) || !placeable(&fixed, gone) {
		t.Fatalf("seed %d: invalid answer %+v\n%+v", seed, a, p)
	}
	return cost
}

// A problem whose combinations are too many is bounded group by group.
func TestSolve_ManyGroupsAreBoundedAlone(t *testing.T) {
	t.Parallel()
	p := &Problem{}
	n := Node{ID: "n"}
	for g := range 10 {
		p.Counts = append(p.Counts, 1)
		n.Options, n.Limit, n.Conflicts = append(n.Options, [][]int64{{int64(g)}}), append(n.Limit, 1), append(n.Conflicts, nil)
	}
	n.Free, n.Victims = []int64{4}, []Victim{{ID: "v", Frees: []int64{100}, Cost: 7, Cohort: -1}}
	p.Nodes = []Node{n}
	if r := Solve(p, 1<<30); r.Lower != 7 || r.Exact {
		t.Errorf("%+v", r)
	}
}
