package tune

import (
	"math/rand/v2"
	"slices"
)

// A Space is a product of axes. A point selects one value of each.
type Space struct {
	Axes   []Axis
	Start  Point // the policy before the search
	Render func(Point) string
}

// An Axis is one decision about a policy, such as a setting.
type Axis struct {
	Name    string
	Values  []string
	Ordered bool // neighbours in Values resemble each other
}

// A Point holds the position of a value for each axis.
type Point []int

// size returns the number of points, or limit if there are at least as many.
func (s *Space) size(limit int) int {
	n := 1
	for i := range s.Axes {
		if n *= len(s.Axes[i].Values); n >= limit {
			return limit
		}
	}
	return n
}

// at returns the n-th point in lexical order.
func (s *Space) at(n int) Point {
	p := make(Point, len(s.Axes))
	for i := len(p) - 1; i >= 0; i-- {
		p[i], n = n%len(s.Axes[i].Values), n/len(s.Axes[i].Values)
	}
	return p
}

// random returns a point that is uniform on each axis.
func (s *Space) random(r *rand.Rand) Point {
	p := make(Point, len(s.Axes))
	for i := range p {
		p[i] = r.IntN(len(s.Axes[i].Values))
	}
	return p
}

// near returns a point that resembles p: on average one axis and a half differ. width is the
// share of an ordered axis by which a value moves at most.
func (s *Space) near(p Point, width float64, r *rand.Rand) Point {
	q := slices.Clone(p)
	for changed := false; !changed; {
		for i := range q {
			n := len(s.Axes[i].Values)
			if n < 2 || r.Float64() >= 1.5/float64(len(q)) {
				continue
			}
			q[i] = s.moved(i, p[i], width, r)
			changed = true
		}
		changed = changed || s.size(2) == 1
	}
	return q
}

// moved returns another position on an axis.
func (s *Space) moved(axis, from int, width float64, r *rand.Rand) int {
	n := len(s.Axes[axis].Values)
	if !s.Axes[axis].Ordered {
		return (from + 1 + r.IntN(n-1)) % n
	}
	reach := max(1, int(width*float64(n)))
	low, high := max(0, from-reach), min(n-1, from+reach)
	to := low + r.IntN(high-low)
	if to >= from {
		to++
	}
	return to
}
