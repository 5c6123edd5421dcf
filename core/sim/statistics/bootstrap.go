package statistics

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Resamples is the number of resamples per interval. Each end of a 95 % interval then
// rests on 125 samples.
const Resamples = 5000

// Groups are samples by their origin: the values of one group share a workload and
// differ in tie-breaks only. Values of one group resemble each other, so they must not
// be resampled as if they were independent. No group may be empty.
type Groups [][]float64

// An Interval is a median with its 95 % bootstrap interval (percentile method). If
// there is only one value, all three fields are that value.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Bootstrap returns the median of all values with its interval, or NaN if there are
// none. Each resample draws groups, and then values within each drawn group, both with
// replacement. With one group the interval covers that group's variation alone.
//
// Percentile intervals only require sorting. Bias correction would require the normal
// distribution, which differs between machines in its last bits, and corrects little
// for a median of few seeds.
func Bootstrap(groups Groups, seed uint64) Interval {
	sorted := slices.Concat(groups...)
	slices.Sort(sorted)
	n := len(sorted)
	if n == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	if sorted[0] == sorted[n-1] {
		return Interval{sorted[0], sorted[0], sorted[0]}
	}
	pcg := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
	members := membersOf(groups)
	medians := make([]float64, Resamples)
	counts := make([]int, n)
	for i := range medians {
		clear(counts)
		for range members {
			group := members[below(pcg, len(members))]
			for range group {
				counts[group[below(pcg, len(group))]]++
			}
		}
		medians[i] = medianOf(sorted, counts)
	}
	slices.Sort(medians)
	return Interval{Median: middle(sorted), Low: Rank(medians, 25), High: Rank(medians, 975)}
}

// membersOf returns the positions of the values of each group in the sorted sample,
// ascending, and the groups by their first position: the interval does not depend on
// the order of the input.
func membersOf(groups Groups) [][]int {
	type value struct {
		x     float64
		group int
	}
	var all []value
	for g, xs := range groups {
		for _, x := range xs {
			all = append(all, value{x, g})
		}
	}
	slices.SortStableFunc(all, func(a, b value) int { return cmp.Compare(a.x, b.x) })
	members := make([][]int, len(groups))
	for i, v := range all {
		members[v.group] = append(members[v.group], i)
	}
	slices.SortFunc(members, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return members
}

// below returns a random number from 0 to n-1. It draws nothing if n is 1.
func below(pcg *rand.PCG, n int) int {
	if n == 1 {
		return 0
	}
	hi, _ := bits.Mul64(pcg.Uint64(), uint64(n))
	return int(hi)
}

// medianOf returns the median of the sorted values, each repeated counts[i] times. At
// least one count must be positive.
func medianOf(sorted []float64, counts []int) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
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
	panic("statistics: every count is zero")
}
