package fmath

import "math"

// Log writes x = 2^k * z with z around 1 and looks up a short inverse of z, such that
// r = z*inverse - 1 is below 1/128 and its rounding error can be stored. Then ln(x) =
// k*ln(2) - ln(inverse) + ln(1+r). The table holds the second term, a series returns
// the third.

const (
	logSteps = 1 << logBits
	logBits  = 7
	logHalve = 53 // mantissas from 1+53/128, which is about the root of 2, are halved
)

// Log returns the natural logarithm of x, with the special values of math.Log.
func Log(x float64) float64 {
	bits := math.Float64bits(x)
	if bits-0x0010_0000_0000_0000 >= 0x7fe0_0000_0000_0000 {
		y, done := logEdge(x)
		if done {
			return y
		}
		bits = math.Float64bits(x*0x1p54) - 54<<52
	}
	w, r, rest := logParts(bits)
	r2 := r * r
	q := float64(r2 * (-1.0/2 + float64(r*(1.0/3)) + float64(r2*(-1.0/4+float64(r*(1.0/5)))) +
		float64(float64(r2*r2)*(-1.0/6+float64(r*(1.0/7))+float64(r2*(-1.0/8+float64(r*(1.0/9))))))))
	hi := w + r
	lo := w - hi + r
	return hi + (lo + rest + q)
}

// logEdge returns Log(x) if x is not a positive normal number. If x is subnormal,
// done is false.
func logEdge(x float64) (y float64, done bool) {
	switch {
	case x != x || x > math.MaxFloat64:
		return x, true
	case x < 0:
		return math.NaN(), true
	case x == 0:
		return math.Inf(-1), true
	}
	return 0, false
}

// logParts returns w, r and rest such that the logarithm of the number with the
// given bits is w + rest + ln(1+r), up to the square of rest. w is 0 or larger
// than r, and rest is below the precision of either. The exponent in bits may
// be negative.
func logParts(bits uint64) (w, r, rest float64) {
	i := bits >> (52 - logBits) & (logSteps - 1)
	k := int64(bits)>>52 - 1023
	one := uint64(1023) << 52
	if i >= logHalve {
		k++
		one = 1022 << 52
	}
	mantissa := bits & (1<<52 - 1)
	z := math.Float64frombits(mantissa | one)
	high := math.Float64frombits(mantissa>>27<<27 | one)

	e := &logTable[i]
	a := float64(high*e.inverse) - 1     // exact: 26 bits times 11
	b := float64((z - high) * e.inverse) // exact: 27 bits times 11
	r = a + b
	t := r - a
	lost := a - (r - t) + (b - t)

	n := float64(k)
	w = float64(n*ln2Hi) + e.hi // exact
	return w, r, float64(n*ln2Lo) + e.lo + (lost - float64(lost*r))
}
