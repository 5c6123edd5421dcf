package optimal

import (
	"cmp"
	"math"
	"slices"
)

// order holds the items of one column, sorted by their use for it.
type order struct {
	free     []float64 // by item, at most the need
	byFree   []int32   // descending
	byWaste  []int32   // by waste per unit, ascending
	unitCost []float64 // by item: waste per unit
}

// load sorts the items that free an amount of a column.
func (o *order) load(items []item, free []float64, need float64) {
	o.free, o.unitCost = o.free[:0], o.unitCost[:0]
	o.byFree = o.byFree[:0]
	for i, f := range free {
		f = min(f, need)
		unit := 0.0
		if f > 0 {
			unit = float64(items[i].cost.waste) / f
			o.byFree = append(o.byFree, int32(i))
		}
		o.free, o.unitCost = append(o.free, f), append(o.unitCost, unit)
	}
	o.byWaste = append(o.byWaste[:0], o.byFree...)
	slices.SortFunc(o.byFree, func(a, b int32) int {
		return cmp.Or(cmp.Compare(o.free[b], o.free[a]), cmp.Compare(a, b))
	})
	slices.SortFunc(o.byWaste, func(a, b int32) int {
		return cmp.Or(cmp.Compare(o.unitCost[a], o.unitCost[b]), cmp.Compare(a, b))
	})
}

// fewest returns the minimum number of items from position i on that free the
// remaining need; ok is false if all of them do not.
func (o *order) fewest(i int, left float64) (n int64, ok bool) {
	for _, at := range o.byFree {
		if int(at) < i {
			continue
		}
		n++
		if left -= o.free[at]; left <= 0 {
			return n, true
		}
	}
	return n, false
}

// least returns a lower bound of the waste of items from position i on that free the
// remaining need: the fractional relaxation, in which the last item may be evicted in
// part.
func (o *order) least(i int, left float64) float64 {
	waste := 0.0
	for _, at := range o.byWaste {
		if int(at) < i {
			continue
		}
		part := min(o.free[at], left)
		waste += float64(part * o.unitCost[at])
		if left -= part; left <= 0 {
			break
		}
	}
	return waste
}

// infeasible reports whether no set of the chosen items and others from position i on
// covers all columns at a lower cost than the best set.
func (s *search) infeasible(i int) bool {
	count, waste := int64(0), 0.0
	for k, left := range s.left {
		if left <= 0 {
			continue
		}
		n, ok := s.orders[k].fewest(i, left)
		if !ok {
			return true
		}
		count = max(count, n)
		if s.wastes {
			waste = max(waste, s.orders[k].least(i, left))
		}
	}
	bound := s.spent
	bound.waste += roundedUp(waste)
	if bound.waste != s.best.waste {
		return bound.waste > s.best.waste
	}
	bound.count += count
	if bound.count != s.best.count {
		return bound.count > s.best.count
	}
	return bound.sum+s.lowest(i, count) >= s.best.sum
}

// roundedUp returns the least whole waste that is not below w, less the rounding
// error of a thousand additions.
func roundedUp(waste float64) int64 { return int64(math.Ceil(waste - float64(waste*0x1p-43))) }

// lowest returns the lowest sum of count items from position i on.
func (s *search) lowest(i int, count int64) (sum int64) {
	for _, at := range s.bySum {
		if count == 0 {
			break
		}
		if int(at) >= i {
			sum += s.items[at].cost.sum
			count--
		}
	}
	return sum
}

func (c cost) compare(d cost) int {
	return cmp.Or(cmp.Compare(c.waste, d.waste), cmp.Compare(c.count, d.count), cmp.Compare(c.sum, d.sum))
}
