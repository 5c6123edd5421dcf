package statistics

import (
	"math"
	"slices"
)

// ExactMedian returns the median of independent differences with the narrowest interval
// between two of the sorted values that contains the true median with at least the given
// probability, whatever the distribution: that of the sign test. It returns false if there
// are too few values for any such interval.
func ExactMedian(xs []float64, level float64) (Interval, bool) {
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	n := len(sorted)
	i := Interval{Median: middle(sorted), Low: math.Inf(-1), High: math.Inf(1)}
	// The interval from rank k+1 to n-k misses the median if at most k values are below it,
	// or above it: each of the two has the probability of at most k heads in n throws.
	term, tail := math.Pow(0.5, float64(n)), 0.0
	ok := false
	for k := 0; k < (n+1)/2; k++ {
		if tail += term; 1-2*tail < level {
			break
		}
		i.Low, i.High, ok = sorted[k], sorted[n-1-k], true
		term = term * float64(n-k) / float64(k+1)
	}
	return i, ok
}

// ExactPairs returns the minimum number of values for which ExactMedian has an interval.
func ExactPairs(level float64) int {
	n := 1
	for 1-2*math.Pow(0.5, float64(n)) < level {
		n++
	}
	return n
}
