package trial

// Adjusted returns differences y without the part that a control x explains: y[i] - b·x[i],
// where b is the least-squares slope of the pairs before i. x[i] must change its sign with
// y[i] if the blocks of pair i are exchanged, and must not be affected by the version that
// decides: then the signs of the result are as random as those of y, and its mean is
// that of y.
func Adjusted(y, x []float64) []float64 {
	out := make([]float64, len(y))
	xy, xx := 0.0, 0.0
	for i := range y {
		slope := 0.0
		if xx > 0 {
			slope = xy / xx
		}
		out[i] = y[i] - slope*x[i]
		xy += x[i] * y[i]
		xx += x[i] * x[i]
	}
	return out
}
