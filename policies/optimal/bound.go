package optimal

import (
	"cmp"
	"math"
	"slices"
)

// order holds one column's items by how well they serve it.
type order struct {
	free     []float64 // by item, no more than is needed
	byFree   []int32   // descending
	byWaste  []int32   // by waste for what is freed, ascending
	unitCost []float64 // by item: waste for one unit
}

// load sorts the items that free something of a column.
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

// fewest is how many items from position i on it takes at least to free what is
// left; ok is false where all of them do not.
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

// least is what is wasted at least by items from position i on that free what
// is left, when the last may be taken in part: the fractional relaxation.
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

// hopeless is whether no set of the chosen items and others from position i on
// covers all columns and costs less than the best.
func (s *search) hopeless(i int) bool {
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

// roundedUp is the least whole waste that is no less, but for what the rounding
// of a thousand additions may have added.
func roundedUp(waste float64) int64 { return int64(math.Ceil(waste - float64(waste*0x1p-43))) }

// lowest is the lowest sum of count items from position i on.
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
