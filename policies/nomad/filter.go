package nomad

import "slices"

// A superset filter sorts the victims of a step by a measure, the largest
// first and equals in row order, and keeps the shortest beginning that is
// enough. It is why a victim that brings the ask no nearer outlives one that
// would have sufficed alone.

// measured is a victim and what its filter sorts it by.
type measured struct {
	by  float64
	row int32
}

// before is the order of a filter. It is total, so how it is sorted does not
// matter.
func (a measured) before(b measured) bool {
	return a.by > b.by || a.by == b.by && a.row < b.row
}

// reorder sorts p.order, drops the victims from step on, and returns them for
// take to bring back. The result is valid until the next reorder.
func (p *Policy) reorder(step int) []measured {
	sortMeasured(p.order)
	for _, v := range p.victims[step:] {
		p.gone[int(v)-p.first] = false
	}
	p.victims = p.victims[:step]
	return p.order
}

// sortMeasured sorts; a step seldom has more than a handful of victims, for
// which insertion is the fastest.
func sortMeasured(s []measured) {
	if len(s) > 24 {
		slices.SortFunc(s, compareMeasured)
		return
	}
	for i := 1; i < len(s); i++ {
		m, j := s[i], i
		for ; j > 0 && m.before(s[j-1]); j-- {
			s[j] = s[j-1]
		}
		s[j] = m
	}
}

func compareMeasured(a, b measured) int {
	if a.before(b) {
		return -1
	}
	return 1 // no two are equal
}
