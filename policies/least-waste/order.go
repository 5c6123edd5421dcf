package leastwaste

import "cmp"

// band returns the number of a priority's band, in ascending order.
func (p *Policy) band(priority int32) int32 {
	if p.bands == 0 {
		return 0
	}
	band := priority / p.bands
	if priority%p.bands < 0 {
		band-- // rounded down below zero as well
	}
	return band
}

// cost returns the cost of evicting a row: its waste plus one nanosecond, so that
// among sets with equal waste the smaller one is cheaper.
func (p *Policy) cost(row int) int64 { return p.waste.Of(row) + 1 }

// rank holds the sort keys of a row of an option.
type rank struct {
	cost int64
	gain float64 // gain of the row alone
	band int32
}

// dearer sorts rows by the order of reprieve: the highest band, then the highest
// cost, then the highest priority, then the one that can least run elsewhere, then the
// lowest gain, then the last row.
func (p *Policy) dearer(a, b int32) int {
	x, y := p.rank(a), p.rank(b)
	switch {
	case x.band != y.band:
		return cmp.Compare(y.band, x.band)
	case x.cost != y.cost:
		return cmp.Compare(y.cost, x.cost)
	}
	return cmp.Or(
		cmp.Compare(p.rows.Priority[b], p.rows.Priority[a]),
		p.compareRelocation(b, a),
		cmp.Compare(x.gain, y.gain),
		cmp.Compare(b, a),
	)
}

// compareRelocation returns -1 if row a can better run elsewhere than row b, 1 if row b can.
func (p *Policy) compareRelocation(a, b int32) int {
	switch {
	case p.relocation.Better(int(a), int(b)):
		return -1
	case p.relocation.Better(int(b), int(a)):
		return 1
	}
	return 0
}

func (p *Policy) rank(row int32) *rank { return &p.ranks[int(row)-p.first] }

// compare compares the costs of two sets, both sorted by dearer, in the highest band
// in which they differ.
func (p *Policy) compare(a, b []int32) int {
	for len(a) > 0 && len(b) > 0 {
		x, y := p.rank(a[0]).band, p.rank(b[0]).band
		if x != y {
			return cmp.Compare(x, y)
		}
		costA, restA := p.split(a)
		costB, restB := p.split(b)
		if costA != costB {
			return cmp.Compare(costA, costB)
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// split sums the cost of a set's highest band and returns the rest of the set.
func (p *Policy) split(set []int32) (sum int64, rest []int32) {
	band := p.rank(set[0]).band
	for k, v := range set {
		r := p.rank(v)
		if r.band != band {
			return sum, set[k:]
		}
		sum += r.cost
	}
	return sum, nil
}
