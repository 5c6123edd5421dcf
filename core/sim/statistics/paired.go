package statistics

import "slices"

// FewPairs is the number of pairs below which an interval is no better than
// the range of the differences: of five equal signs one in sixteen is chance.
const FewPairs = 5

// Difference is the median of paired differences a[i] - b[i] with its interval.
type Difference struct {
	Interval
	Pairs int `json:"pairs"`
}

// Paired compares values that belong together: a[i] and b[i] come from the
// same scenario and seed. What the seeds have in common cancels out, so small
// differences show that two separate intervals would hide.
func Paired(a, b []float64, seed uint64) Difference {
	if len(a) != len(b) {
		panic("statistics: pairs need two equally long lists")
	}
	differences := slices.Clone(a)
	for i := range differences {
		differences[i] -= b[i]
	}
	return Difference{Bootstrap(differences, seed), len(a)}
}

// None is whether the interval holds 0: no difference is shown. Without pairs
// none is.
func (d Difference) None() bool { return d.Pairs == 0 || d.Low <= 0 && d.High >= 0 }
