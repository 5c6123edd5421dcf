package statistics

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Resamples is the number of resamples per interval. Each end of a 95 % interval then
// rests on 125 samples.
const Resamples = 5000

// An Interval is a median with its 95 % bootstrap interval (percentile method). If
// there is only one value, all three fields are that value.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Bootstrap returns the median of xs with its interval, or NaN if xs is empty.
// Percentile intervals only require sorting. Bias correction would require the normal
// distribution, which differs between machines in its last bits, and corrects little
// for a median of few seeds.
func Bootstrap(xs []float64, seed uint64) Interval {
	sorted := slices.Clone(xs)
	slices.Sort(sorted)
	n := len(sorted)
	if n == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	if sorted[0] == sorted[n-1] {
		return Interval{sorted[0], sorted[0], sorted[0]}
	}
	pcg := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	medians := make([]float64, Resamples)
	counts := make([]int, n)
	for i := range medians {
		clear(counts)
		for range n {
			hi, _ := bits.Mul64(pcg.Uint64(), uint64(n))
			counts[hi]++
		}
		medians[i] = medianOf(sorted, counts)
	}
	slices.Sort(medians)
	return Interval{Median: middle(sorted), Low: rank(medians, 25), High: rank(medians, 975)}
}

// medianOf returns the median of the sorted values, each repeated counts[i] times.
// The counts must sum to the number of values.
func medianOf(sorted []float64, counts []int) float64 {
	n := len(sorted)
	lower, upper := (n-1)/2, n/2 // ranks, from 0
	seen, low := 0, 0.0
	for i, c := range counts {
		if c == 0 {
			continue
		}
		if seen <= lower && lower < seen+c {
			low = sorted[i]
		}
		if seen += c; upper < seen {
			return mean(low, sorted[i])
		}
	}
	panic("statistics: counts do not sum to the number of values")
}
