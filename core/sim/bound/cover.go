package bound

import (
	"cmp"
	"math/bits"
	"slices"
)

// shareScale is the value of one whole need in the surrogate dimension.
const shareScale = 1 << 20

// A cover is a minimum-cost covering problem on one node: a set of victims of minimum
// cost that frees the missing amount of every dimension.
//
// It is solved by depth-first branch and bound. The bound relaxes the problem to one
// dimension and allows fractions of a victim, which is the linear relaxation of that
// dimension. A surrogate dimension, the sum of all dimensions as shares of their needs,
// bounds victims that serve several dimensions badly.
type cover struct {
	dims   int     // including the surrogate, which is last
	need   []int64 // positive
	items  []coverItem
	orders [][]int32 // by dimension: items by cost per amount, ascending
	state  []decision
	best   int64
	chosen []int // victims of the best cover
	steps  *int64
	limit  int64
}

// coverItem is a victim with the amounts that it frees of the needs.
type coverItem struct {
	victim int
	cost   int64
	frees  []int64 // capped at the need
}

// newCover returns the problem of freeing the needs by items. Amounts of items are by
// the dimensions of need.
func newCover(need []int64, items []coverItem, steps *int64, limit int64) *cover {
	c := &cover{steps: steps, limit: limit, best: Infinite}
	var dims []int
	for d, n := range need {
		if n > 0 {
			dims, c.need = append(dims, d), append(c.need, n)
		}
	}
	if len(dims) == 0 {
		return c
	}
	c.dims = len(dims) + 1
	c.need = append(c.need, int64(len(dims))*shareScale)
	for i := range items {
		c.addItem(&items[i], dims)
	}
	for d := range c.dims {
		order := make([]int32, 0, len(c.items))
		for i := range c.items {
			if c.items[i].frees[d] > 0 {
				order = append(order, int32(i))
			}
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			x, y := &c.items[a], &c.items[b]
			return cmp.Or(compareRatio(x.cost, x.frees[d], y.cost, y.frees[d]), cmp.Compare(y.frees[d], x.frees[d]))
		})
		c.orders = append(c.orders, order)
	}
	c.state = make([]decision, len(c.items))
	return c
}

// addItem adds an item that frees some of the needs.
func (c *cover) addItem(from *coverItem, dims []int) {
	frees := make([]int64, c.dims)
	for at, d := range dims {
		free := min(max(from.frees[d], 0), c.need[at])
		frees[at] = free
		frees[c.dims-1] += divideUp(free, shareScale, c.need[at])
	}
	if frees[c.dims-1] > 0 {
		c.items = append(c.items, coverItem{from.victim, from.cost, frees})
	}
}

// compareRatio compares a/b with x/y for non-negative a and x and positive b and y.
func compareRatio(a, b, x, y int64) int {
	hi1, lo1 := bits.Mul64(uint64(a), uint64(y))
	hi2, lo2 := bits.Mul64(uint64(x), uint64(b))
	return cmp.Or(cmp.Compare(hi1, hi2), cmp.Compare(lo1, lo2))
}

// divideUp returns a·b/c rounded up, for non-negative a and b and positive c. The
// quotient must fit, which holds if a is at most c or b is at most c.
func divideUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	quotient, rest := bits.Div64(hi, lo, uint64(c))
	if rest > 0 {
		quotient++
	}
	return int64(quotient)
}

// relaxed returns the bound without a search; Infinite if there is no cover.
func (c *cover) relaxed() int64 {
	if c.dims == 0 {
		return 0
	}
	lower, _ := c.bound(c.need)
	return lower
}

// solve returns the minimum cost and its victims. If the search is cut off, exact is false and
// cost is a lower bound.
func (c *cover) solve() (cost int64, victims []int, exact bool) {
	if c.dims == 0 {
		return 0, nil, true
	}
	lower, _ := c.bound(c.need)
	if lower == Infinite {
		return Infinite, nil, true
	}
	c.search(c.need, 0)
	if *c.steps >= c.limit {
		return lower, nil, false
	}
	slices.Sort(c.chosen)
	return c.best, c.chosen, true
}

// search tries all covers that contain the items evicted so far, at the given cost.
func (c *cover) search(missing []int64, cost int64) {
	if *c.steps >= c.limit {
		return
	}
	lower, at := c.bound(missing)
	if lower == Infinite || cost+lower >= c.best {
		return
	}
	if at < 0 {
		c.best, c.chosen = cost, c.chosen[:0]
		for i, s := range c.state {
			if s == evicted {
				c.chosen = append(c.chosen, c.items[i].victim)
			}
		}
		return
	}
	next := make([]int64, c.dims)
	for d := range next {
		next[d] = missing[d] - c.items[at].frees[d]
	}
	c.surrogate(next)
	c.state[at] = evicted
	c.search(next, cost+c.items[at].cost)
	c.state[at] = undecided
	ruledOut := c.spare(at)
	c.search(missing, cost)
	for _, i := range ruledOut {
		c.state[i] = undecided
	}
}

// surrogate raises the surrogate's missing amount to that of the other dimensions, which
// is larger if a victim freed more of a dimension than was missing.
func (c *cover) surrogate(missing []int64) {
	var sum int64
	for d := range c.dims - 1 {
		if missing[d] > 0 {
			hi, lo := bits.Mul64(uint64(missing[d]), shareScale)
			share, _ := bits.Div64(hi, lo, uint64(c.need[d])) // rounded down: a bound
			sum += int64(share)
		}
	}
	missing[c.dims-1] = max(missing[c.dims-1], sum)
}

// spare excludes an item, and those that it dominates: a cover that evicts one of them
// instead is not cheaper. It returns the excluded items.
func (c *cover) spare(at int) (list []int) {
	x := &c.items[at]
	for i := range c.items {
		y := &c.items[i]
		if c.state[i] == undecided && (i == at || y.cost >= x.cost && !exceeds(y.frees, x.frees)) {
			c.state[i] = spared
			list = append(list, i)
		}
	}
	*c.steps += int64(len(c.items))
	return list
}

// exceeds reports whether a is larger than b in some dimension.
func exceeds(a, b []int64) bool {
	for d := range a {
		if a[d] > b[d] {
			return true
		}
	}
	return false
}

// bound returns a lower bound on the cost of the undecided items that cover the missing
// amounts, and the item to branch on; negative if nothing is missing.
func (c *cover) bound(missing []int64) (lower int64, branch int) {
	branch = -1
	for d := range c.dims {
		if missing[d] <= 0 {
			continue
		}
		cost, first := c.boundIn(d, missing[d])
		if first < 0 {
			return Infinite, -1
		}
		if branch < 0 || cost > lower {
			lower, branch = cost, first
		}
	}
	return lower, branch
}

// boundIn returns the bound of one dimension and its cheapest item by amount. The item is
// negative if all items together free too little.
func (c *cover) boundIn(d int, missing int64) (cost int64, first int) {
	first = -1
	for at, i := range c.orders[d] {
		if c.state[i] != undecided {
			continue
		}
		item := &c.items[i]
		if first < 0 {
			first = int(i)
		}
		if free := item.frees[d]; free < missing {
			cost += item.cost
			missing -= free
			continue
		}
		*c.steps += int64(at + 1)
		return cost + divideUp(missing, item.cost, item.frees[d]), first
	}
	*c.steps += int64(len(c.orders[d]) + 1)
	return 0, -1
}
