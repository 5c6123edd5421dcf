package trial

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/fmath"
)

// An Interval is a mean difference with the confidence interval of its sequence.
type Interval struct {
	Mean, Low, High float64 // Low and High are infinite while the pairs are too few
	Pairs           int
}

// stakes are the bets of the mixture, in units of the standard deviation of the
// differences. The best stake for an effect is the effect in these units: the smallest
// ones detect effects of a twentieth of the noise, the largest ones decide within ten
// pairs.
var stakes = [...]float64{0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2}

// Estimate returns the interval of the mean of differences at an error rate of alpha: the
// probability that any of the intervals of a growing list excludes the true mean is at
// most alpha. It costs about 200 passes over the differences.
func Estimate(differences []float64, alpha float64) Interval {
	out := Interval{Low: math.Inf(-1), High: math.Inf(1), Pairs: len(differences)}
	if len(differences) == 0 {
		return out
	}
	sum := 0.0
	for _, d := range differences {
		sum += d
	}
	out.Mean = sum / float64(len(differences))
	s := search{differences: differences, limit: rejection(alpha), mean: out.Mean}
	out.Low, out.High = s.bound(-1), s.bound(1)
	// A scan in steps could miss that 0 is not excluded: decisions compare with 0.
	if !s.excludes(0) {
		out.Low, out.High = min(out.Low, 0), max(out.High, 0)
	}
	return out
}

// Excludes reports whether the differences exclude a mean at an error rate of alpha. It
// costs one pass over them.
func Excludes(differences []float64, mean, alpha float64) bool {
	return logWealth(differences, mean) >= rejection(alpha)
}

// rejection returns the logarithm of the wealth at which a value is excluded: a gambler
// whose bets are fair exceeds a wealth of 1/alpha with a probability of at most alpha,
// at any time (Ville's inequality).
func rejection(alpha float64) float64 { return -fmath.Log(alpha) }

// logWealth returns the logarithm of the wealth of a gambler who bets against the
// hypothesis that the differences are symmetric around mean.
//
// For each stake c the wealth is multiplied by exp(c·z)/cosh(c·z) for each difference x,
// where z is (x - mean) divided by the root mean square of these values so far. Given the
// sizes of all values up to this one, the two signs are equally probable, and the expected
// factor is 1: the scale needs no assumption. The mixture of stakes and of both signs is a
// fair game as well.
func logWealth(differences []float64, mean float64) float64 {
	var up, down [len(stakes)]float64
	squares := 0.0
	for i, d := range differences {
		x := d - mean
		squares += x * x
		if x == 0 {
			continue // the factor is 1
		}
		z := x / math.Sqrt(squares/float64(i+1))
		for k, c := range stakes {
			b := c * z
			cosh := logCosh(b)
			up[k] += b - cosh
			down[k] -= b + cosh
		}
	}
	return logMean(append(up[:], down[:]...))
}

// logCosh returns log(cosh(x)) without overflow.
func logCosh(x float64) float64 {
	x = math.Abs(x)
	return x + fmath.Log((1+fmath.Exp(-2*x))/2)
}

// logMean returns the logarithm of the mean of exp(x) without overflow.
func logMean(logs []float64) float64 {
	top, sum := slices.Max(logs), 0.0
	for _, x := range logs {
		sum += fmath.Exp(x - top)
	}
	return top + fmath.Log(sum/float64(len(logs)))
}

// search finds the ends of the interval of means that are not excluded.
type search struct {
	differences []float64
	limit, mean float64
}

func (s *search) excludes(mean float64) bool { return logWealth(s.differences, mean) >= s.limit }

// Steps of a search.
const (
	scanSteps   = 64 // from the far end inwards
	bisectSteps = 30
)

// bound returns one end of the interval: the lower one if side is -1. It scans from beyond
// the furthest difference towards the mean, so that a value in the interval is found even
// if the values that are not excluded are not contiguous.
func (s *search) bound(side float64) float64 {
	far := 0.0
	for _, d := range s.differences {
		far = max(far, side*(d-s.mean))
	}
	if far == 0 {
		return s.mean // all differences are equal
	}
	outside := s.mean + side*2*far
	if !s.excludes(outside) {
		return side * math.Inf(1)
	}
	for i := 1; i <= scanSteps; i++ {
		inside := s.mean + side*2*far*float64(scanSteps-i)/scanSteps
		if !s.excludes(inside) {
			return s.bisect(outside, inside)
		}
		outside = inside
	}
	return s.mean // even the mean is excluded: the differences are not symmetric
}

// bisect returns the excluded value between an excluded and an included one that is
// closest to the included one.
func (s *search) bisect(outside, inside float64) float64 {
	for range bisectSteps {
		if middle := (outside + inside) / 2; s.excludes(middle) {
			outside = middle
		} else {
			inside = middle
		}
	}
	return outside
}
