package statistics

// FewSamples is the number of independent samples below which an interval is no better
// than the range of the differences: five differences of equal sign occur by chance in
// one of sixteen cases.
const FewSamples = 5

// A Difference is the median of the paired differences a - b with its interval.
type Difference struct {
	Interval
	Pairs int `json:"pairs"`
}

// Paired returns the difference of paired values: a[i][k] and b[i][k] are from the same
// workload and seed. Effects of both cancel out, so it detects small differences that
// separate intervals would hide. It panics if the lengths differ.
func Paired(a, b Groups, seed uint64) Difference {
	if len(a) != len(b) {
		panic("statistics: paired samples differ in length")
	}
	differences, pairs := make(Groups, len(a)), 0
	for i := range a {
		if len(a[i]) != len(b[i]) {
			panic("statistics: paired samples differ in length")
		}
		for k := range a[i] {
			differences[i] = append(differences[i], a[i][k]-b[i][k])
		}
		pairs += len(a[i])
	}
	return Difference{Bootstrap(differences, seed), pairs}
}

// None reports whether the interval contains 0, that is, no difference is shown. If
// there are no pairs, it returns true.
func (d Difference) None() bool { return d.Pairs == 0 || d.Low <= 0 && d.High >= 0 }
