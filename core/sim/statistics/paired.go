package statistics

import "slices"

// FewPairs is the number of pairs below which an interval is no better than the range
// of the differences: five differences of equal sign occur by chance in one of
// sixteen cases.
const FewPairs = 5

// A Difference is the median of the paired differences a[i] - b[i] with its interval.
type Difference struct {
	Interval
	Pairs int `json:"pairs"`
}

// Paired returns the difference of paired values: a[i] and b[i] are from the same
// scenario and seed. Effects of the seed cancel out, so it detects small differences
// that separate intervals would hide. It panics if the lengths differ.
func Paired(a, b []float64, seed uint64) Difference {
	if len(a) != len(b) {
		panic("statistics: paired samples differ in length")
	}
	differences := slices.Clone(a)
	for i := range differences {
		differences[i] -= b[i]
	}
	return Difference{Bootstrap(differences, seed), len(a)}
}

// None reports whether the interval contains 0, that is, no difference is shown. If
// there are no pairs, it returns true.
func (d Difference) None() bool { return d.Pairs == 0 || d.Low <= 0 && d.High >= 0 }
