package statistics

import (
	"math"
	"slices"
)

// Median returns the middle of xs, or the mean of the two middle values. If xs is
// empty, it returns NaN.
func Median(xs []float64) float64 {
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	return middle(sorted)
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return sorted[n/2]
	}
	return mean(sorted[n/2-1], sorted[n/2])
}

// mean avoids overflow by halving before adding, but only if the sum overflows:
// halving would lose the last bits of tiny values.
func mean(a, b float64) float64 {
	if sum := a + b; !math.IsInf(sum, 0) {
		return sum / 2
	}
	return a/2 + b/2
}

// Rank returns the smallest value that at least permille thousandths of sorted do not
// exceed (nearest rank), or NaN if sorted is empty.
func Rank(sorted []float64, permille int) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	at := (n*permille + 999) / 1000
	return sorted[min(max(at, 1), n)-1]
}
