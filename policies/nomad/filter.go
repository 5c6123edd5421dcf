package nomad

import "slices"

// A superset filter sorts the victims of a step by a measure, the largest first and
// equal ones in row order, and retains the shortest prefix that suffices. It is the
// reason why a victim that does not help may remain while one that would have
// sufficed alone is dropped.

// measured is a victim with the sort key of its filter.
type measured struct {
	by  float64
	row int32
}

// before is the order of a filter. It is total, so that the sort need not be stable.
func (a measured) before(b measured) bool {
	return a.by > b.by || a.by == b.by && a.row < b.row
}

// reorder sorts p.order, removes the victims from step on, and returns them, so that
// the caller can pick them again. The result is valid until the next call.
func (p *Policy) reorder(step int) []measured {
	sortMeasured(p.order)
	for _, v := range p.victims[step:] {
		p.gone[int(v)-p.first] = false
	}
	p.victims = p.victims[:step]
	return p.order
}

// sortMeasured sorts. A step rarely has more than a few victims, for which insertion
// sort is the fastest.
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
