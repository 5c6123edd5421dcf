package optimal

import (
	"cmp"
	"slices"
)

// search finds the cheapest set of items that covers every column. An item is a row
// that may be evicted, a column is a shortfall.
type search struct {
	items  []item    // in the order in which they are tried
	need   []float64 // by column
	free   [][]float64
	orders []order // by column
	bySum  []int32 // items by sum, ascending

	left     []float64 // by column, less the amounts that chosen items free; zero or negative if covered
	chosen   []int32   // items, ascending
	passed   []int32   // items passed over on the way here, ascending
	spent    cost      // of the chosen
	best     cost
	found    []int32 // rows of the best set, if it is cheaper than the first
	wastes   bool    // at least one item has waste
	steps    int64
	maxSteps int64
	budgets  *budgets // budgets that no set may overrun; nil: none
}

// item is a candidate.
type item struct {
	row   int32
	cost  cost
	gain  float64 // sum over the columns of the share that it covers
	spill float64 // and of the surplus beyond
	price float64 // waste per gain
}

// begin empties the search.
func (s *search) begin(maxSteps int64) {
	s.items, s.need, s.left = s.items[:0], s.need[:0], s.left[:0]
	s.chosen, s.passed, s.found = s.chosen[:0], s.passed[:0], s.found[:0]
	s.spent, s.wastes, s.steps, s.maxSteps = cost{}, false, 0, maxSteps
}

// add adds a candidate.
func (s *search) add(row int32, c cost, gain, spill float64) {
	s.wastes = s.wastes || c.waste > 0
	s.items = append(s.items, item{row, c, gain, spill, float64(c.waste) / gain})
}

// sort sorts the items into the order in which they are tried: the lowest waste per
// gain first, then the highest gain. An item that is as good as another in everything
// and better in something comes before it. Equal items are sorted by surplus, then by
// row.
func (s *search) sort() { slices.SortFunc(s.items, compareItems) }

func compareItems(a, b item) int {
	return cmp.Or(
		cmp.Compare(a.price, b.price),
		cmp.Compare(b.gain, a.gain),
		cmp.Compare(a.cost.sum, b.cost.sum),
		cmp.Compare(a.spill, b.spill),
		cmp.Compare(a.row, b.row),
	)
}

// addColumn adds a shortfall, with the amount that each row of the call frees of it.
// The items must be added and sorted before.
func (s *search) addColumn(need float64, frees []float64) {
	k := len(s.need)
	s.need, s.left = append(s.need, need), append(s.left, need)
	if k == len(s.free) {
		s.free, s.orders = append(s.free, nil), append(s.orders, order{})
	}
	free := s.free[k][:0]
	for i := range s.items {
		free = append(free, frees[s.items[i].row])
	}
	s.free[k] = free
	s.orders[k].load(s.items, free, need)
}

// run returns the rows of a set that costs less than the best known, or nil if it
// found none. Unless the steps were exhausted, nil means that there is none.
func (s *search) run(best cost) []int32 {
	s.best = best
	s.bySum = s.bySum[:0]
	for i := range s.items {
		s.bySum = append(s.bySum, int32(i))
	}
	slices.SortFunc(s.bySum, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.items[a].cost.sum, s.items[b].cost.sum), cmp.Compare(a, b))
	})
	s.try(0)
	if len(s.found) == 0 {
		return nil
	}
	return s.found
}

// try tries every set that has the chosen items and others from position i on, unless
// it provably cannot improve on the best.
func (s *search) try(i int) {
	if s.covered() {
		s.keep()
		return
	}
	passed := len(s.passed)
	for ; ; i++ {
		for i < len(s.items) && !s.worth(i) {
			i++
		}
		if i == len(s.items) || s.infeasible(i) {
			break
		}
		if s.steps++; s.steps > s.maxSteps {
			break
		}
		s.choose(i)
		s.try(i + 1)
		s.release(i)
		s.passed = append(s.passed, int32(i))
	}
	s.passed = s.passed[:passed]
}

func (s *search) covered() bool {
	for _, left := range s.left {
		if left > 0 {
			return false
		}
	}
	return true
}

// keep makes the chosen items the best set if they are cheaper.
func (s *search) keep() {
	if s.spent.compare(s.best) >= 0 {
		return
	}
	s.best, s.found = s.spent, s.found[:0]
	for _, i := range s.chosen {
		s.found = append(s.found, s.items[i].row)
	}
}

func (s *search) choose(i int) {
	for k := range s.left {
		s.left[k] -= s.free[k][i]
	}
	if s.budgets != nil {
		s.budgets.add(s.items[i].row, 1)
	}
	s.spent.add(s.items[i].cost)
	s.chosen = append(s.chosen, int32(i))
}

func (s *search) release(i int) {
	for k := range s.left {
		s.left[k] += s.free[k][i]
	}
	if s.budgets != nil {
		s.budgets.add(s.items[i].row, -1)
	}
	s.spent.subtract(s.items[i].cost)
	s.chosen = s.chosen[:len(s.chosen)-1]
}

// worth reports whether item i must be tried: it overruns no relevant budget, it has
// a gain, and no skipped item has at least its gain at no higher cost. Otherwise
// every set with item i has a counterpart with the skipped item, which was tried.
func (s *search) worth(i int) bool {
	if s.budgets != nil && !s.budgets.allow(s.items[i].row) {
		return false
	}
	brings := false
	for k, left := range s.left {
		brings = brings || left > 0 && s.free[k][i] > 0
	}
	if !brings {
		return false
	}
	for _, p := range s.passed {
		if s.dominates(int(p), i) && (s.budgets == nil || len(s.budgets.of(s.items[p].row)) == 0) {
			return false
		}
	}
	return true
}

// dominates reports whether item p is as good as item i for every remaining
// shortfall.
func (s *search) dominates(p, i int) bool {
	a, b := &s.items[p].cost, &s.items[i].cost
	if a.waste > b.waste || a.sum > b.sum {
		return false
	}
	for k, left := range s.left {
		if left > 0 && s.free[k][p] < min(left, s.free[k][i]) {
			return false
		}
	}
	return true
}
