package aging

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/fmath"
)

// The gap is the base gap, halved every half-life, rounded up, and no less than
// the floor. It is computed from the other side: until says how long a wait
// makes a gap small enough, and the gap of a wait is the smallest that the wait
// is long enough for. So the time that a recheck asks for and the gap that holds
// at that time cannot disagree by a rounding error.

// until is the waiting time, in nanoseconds, from which on a gap is enough for
// a preemptor with the given base gap, for 0 < gap < base.
func (p *Policy) until(gap, base int32) int64 {
	halvings := log2(float64(base) / float64(gap))
	return p.grace + int64(math.Ceil(float64(float64(p.halfLife)*halvings)))
}

// gap is the gap after waiting, between the floor and the base, which is above.
func (p *Policy) gap(base int32, waiting int64) int32 {
	low, high := p.floor, base // high is always enough
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

// log2 is the logarithm to base 2, exact for powers of two, so that a half-life
// is a half-life to the nanosecond.
func log2(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	if fraction == 0.5 {
		return float64(exponent - 1)
	}
	return float64(exponent) + fmath.Log(fraction)/math.Ln2
}

// waits is until for one base gap. Rows come by priority, so that it is often
// asked for what it has just answered.
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
