package statistics

import (
	"math"
	"slices"
)

// Median is the middle of xs, or the mean of the two middle ones; NaN of none.
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

// mean halves before it adds, so that large values do not overflow, unless
// that would lose the last bits of tiny ones.
func mean(a, b float64) float64 {
	if sum := a + b; !math.IsInf(sum, 0) {
		return sum / 2
	}
	return a/2 + b/2
}

// Quantile is the smallest of xs that at least permille thousandths of them do
// not exceed (nearest rank): a value that occurred. NaN of none.
func Quantile(xs []float64, permille int) float64 {
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	return rank(sorted, permille)
}

func rank(sorted []float64, permille int) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	at := (n*permille + 999) / 1000
	return sorted[min(max(at, 1), n)-1]
}
