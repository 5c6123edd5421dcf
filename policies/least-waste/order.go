package leastwaste

import "cmp"

// band numbers the band of a priority, from below.
func (p *Policy) band(priority int32) int32 {
	if p.bands == 0 {
		return 0
	}
	band := priority / p.bands
	if priority%p.bands < 0 {
		band-- // downwards below zero too
	}
	return band
}

// cost is what evicting a row costs: its waste and one nanosecond, so that of
// equally wasteful sets the smaller is cheaper.
func (p *Policy) cost(row int) int64 { return p.waste.Of(row) + 1 }

// rank is what the rows of an option are ordered by.
type rank struct {
	cost int64
	gain float64 // what the row brings by itself
	band int32
}

// dearer orders rows by whom to spare first: the highest band, in it the
// highest cost; of equals the highest priority, then whoever brings least, then
// the last row.
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
		cmp.Compare(x.gain, y.gain),
		cmp.Compare(b, a),
	)
}

func (p *Policy) rank(row int32) *rank { return &p.ranks[int(row)-p.first] }

// compare compares what two sets cost, both the dearest first: in the highest
// band in which they differ.
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

// split adds up what the highest band of a set costs, and returns the rest.
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
