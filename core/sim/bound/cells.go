package bound

// A cell is the cost of placing certain numbers of instances on one node.
type cell struct {
	lower   int64
	exact   bool
	victims []int // of the node; valid if exact
}

// place is a node with the decisions of a branch.
type place struct {
	*Node
	free  []int64 // after the evictions that the branch decided
	items []coverItem
	state []decision // by victim
	cells []cell     // by loads of the table; nil until computed
}

// loads lists the combinations of instances that one node may receive, by group. The
// combination at position i has the index i in mixed radix.
type loads struct {
	counts []int
	list   [][]int
}

// newLoads returns all combinations up to counts, the empty one first.
func newLoads(counts []int) *loads {
	l := &loads{counts: counts, list: [][]int{make([]int, len(counts))}}
	for g, n := range counts {
		shorter := l.list
		for k := 1; k <= n; k++ {
			for _, q := range shorter {
				longer := append([]int(nil), q...)
				longer[g] = k
				l.list = append(l.list, longer)
			}
		}
	}
	return l
}

// fits reports whether the load at position q can be added to the one at position s.
func (l *loads) fits(s, q int) bool {
	a, b := l.list[s], l.list[q]
	for g, n := range l.counts {
		if a[g]+b[g] > n {
			return false
		}
	}
	return true
}

// search state of one problem.
type table struct {
	problem *Problem
	loads   *loads
	steps   int64
	limit   int64
}

// priceFunc returns the price of a victim in the relaxed problem.
type priceFunc func(node, victim int) int64

// newPlace returns a node with the decisions about its victims.
func newPlace(p *Problem, at int, state []decision, price priceFunc) *place {
	n := &p.Nodes[at]
	out := &place{Node: n, free: append([]int64(nil), n.Free...), state: state}
	for v := range n.Victims {
		switch state[v] {
		case evicted:
			for d := range out.free {
				out.free[d] += n.Victims[v].Frees[d]
			}
		case undecided:
			out.items = append(out.items, coverItem{v, price(at, v), n.Victims[v].Frees})
		}
	}
	return out
}

// fill computes the relaxed cost of every load of a place.
func (t *table) fill(p *place) {
	p.cells = make([]cell, len(t.loads.list))
	for at, q := range t.loads.list {
		p.cells[at] = t.relax(p, q)
	}
}

// relax returns a cell with a lower bound. It is exact if nothing must be evicted, or if
// no eviction helps.
func (t *table) relax(p *place, q []int) cell {
	out := cell{lower: Infinite, exact: true}
	t.eachNeed(p, q, func(need []int64, forced []int, items []coverItem, base int64) {
		c := newCover(need, items, &t.steps, t.limit)
		lower := c.relaxed()
		if lower == Infinite {
			return
		}
		if lower += base; lower < out.lower {
			out = cell{lower: lower, exact: c.dims == 0, victims: forced}
		}
	})
	return out
}

// refine makes a cell exact. If the search is cut off, its lower bound remains.
func (t *table) refine(p *place, at int) {
	best, complete := cell{lower: Infinite, exact: true}, true
	t.eachNeed(p, t.loads.list[at], func(need []int64, forced []int, items []coverItem, base int64) {
		cost, victims, exact := newCover(need, items, &t.steps, t.limit).solve()
		complete = complete && exact
		if cost != Infinite && cost+base < best.lower {
			best.lower = cost + base
			best.victims = append(append([]int(nil), forced...), victims...)
		}
	})
	if complete {
		p.cells[at] = best
	}
}

// eachNeed calls visit with the missing amounts of each way in which a place can serve a load, the
// victims that conflicts force, the items left, and the price of the forced ones.
func (t *table) eachNeed(p *place, q []int, visit func(need []int64, forced []int, items []coverItem, base int64)) {
	forced, items, base, ok := p.conflicts(q)
	if !ok {
		return
	}
	ask := make([]int64, len(p.free))
	var add func(g, left, option int)
	add = func(g, left, option int) {
		for g < len(q) && left == 0 {
			if g++; g < len(q) {
				left, option = q[g], 0
			}
		}
		if g == len(q) {
			need := make([]int64, len(ask))
			for d := range need {
				if ask[d] > 0 { // a node may lack what nothing requests
					need[d] = max(0, ask[d]-p.free[d])
				}
			}
			for _, v := range forced {
				for d := range need {
					need[d] = max(0, need[d]-p.Victims[v].Frees[d])
				}
			}
			t.steps += int64(len(ask))
			visit(need, forced, items, base)
			return
		}
		for o := option; o < len(p.Options[g]); o++ {
			for d, amount := range p.Options[g][o] {
				ask[d] += amount
			}
			add(g, left-1, o)
			for d, amount := range p.Options[g][o] {
				ask[d] -= amount
			}
		}
	}
	first := 0
	if len(q) > 0 {
		first = q[0]
	}
	add(0, first, 0)
}

// conflicts returns the victims that a load forces, which the branch has not evicted, the
// items without them, and their price. It returns false if the node cannot receive the
// load.
func (p *place) conflicts(q []int) (forced []int, items []coverItem, base int64, ok bool) {
	must := map[int]bool{}
	for g, n := range q {
		if n == 0 {
			continue
		}
		if n > p.Limit[g] || len(p.Options[g]) == 0 {
			return nil, nil, 0, false
		}
		for _, v := range p.Conflicts[g] {
			if p.state[v] == spared {
				return nil, nil, 0, false
			}
			must[v] = p.state[v] == undecided
		}
	}
	if len(must) == 0 {
		return nil, p.items, 0, true
	}
	for i := range p.items {
		if must[p.items[i].victim] {
			forced, base = append(forced, p.items[i].victim), base+p.items[i].cost
		} else {
			items = append(items, p.items[i])
		}
	}
	return forced, items, base, true
}
