package aging

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/fmath"
)

// The gap is the base gap, halved every half-life, rounded up, and at least the
// floor. It is computed from the opposite direction: until returns the waiting time
// at which a gap suffices, and the gap of a waiting time is the smallest gap that
// suffices by then. The time of a recheck and the gap at that time therefore cannot
// differ by a rounding error.

// until returns the waiting time, in nanoseconds, from which a gap suffices for a
// preemptor with the given base gap, if 0 < gap < base.
func (p *Policy) until(gap, base int32) int64 {
	halvings := log2(float64(base) / float64(gap))
	return p.grace + int64(math.Ceil(float64(float64(p.halfLife)*halvings)))
}

// gap returns the gap after a waiting time, between the floor and the base.
func (p *Policy) gap(base int32, waiting int64) int32 {
	low, high := p.floor, base // high always suffices
	for low < high {
		mid := low + (high-low)/2
		if p.until(mid, base) <= waiting {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high
}

// log2 returns the logarithm to base 2, which is exact for powers of two, so that a
// half-life is exact to the nanosecond.
func log2(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	if fraction == 0.5 {
		return float64(exponent - 1)
	}
	return float64(exponent) + fmath.Log(fraction)/math.Ln2
}

// waits caches until for one base gap. Rows are sorted by priority, so that
// consecutive calls often have the same argument.
type waits struct {
	policy *Policy
	base   int32
	last   int32
	time   int64
}

func (w *waits) until(gap int32) int64 {
	if gap != w.last {
		w.last, w.time = gap, w.policy.until(gap, w.base)
	}
	return w.time
}
