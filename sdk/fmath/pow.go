package fmath

import "math"

// Pow computes the logarithm of x in two parts, of which the second holds the
// rounding error of the first, multiplies both by y, and passes both to the
// exponential. The product may reach 745, so that an error in the logarithm counts
// 745 times; the two parts hold it to about 68 bits.

// Pow returns x^y, with the special values of math.Pow.
func Pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.NaN()
	case y == 1:
		return x
	}
	sign := 1.0
	if math.Signbit(x) && isOdd(y) {
		sign = -1
	}
	switch ax := math.Abs(x); {
	case math.IsInf(y, 0):
		return powInf(ax, y > 0)
	case ax == 0 || ax > math.MaxFloat64:
		if (ax == 0) == (y < 0) {
			return float64(sign * math.Inf(1))
		}
		return float64(sign * 0)
	case x < 0 && y != math.Trunc(y):
		return math.NaN()
	default:
		return float64(sign * powPositive(ax, y))
	}
}

// powInf returns x^±Inf if x is not negative.
func powInf(x float64, up bool) float64 {
	switch {
	case x == 1:
		return 1
	case (x > 1) == up:
		return math.Inf(1)
	}
	return 0
}

func isOdd(y float64) bool {
	return math.Abs(y) < 1<<53 && y == math.Trunc(y) && int64(y)&1 != 0
}

// powPositive returns x^y if x is finite and above zero and y is finite.
func powPositive(x, y float64) float64 {
	hi, lo := logPair(x)
	e := float64(y * hi)
	switch {
	case e > 720:
		return math.Inf(1)
	case e < -750:
		return 0
	case math.Abs(e) < 0x1p-60:
		return 1
	}
	k, p := expParts(e, productError(y, hi, e)+float64(y*lo))
	return expScale(k, p)
}

// logPair returns ln(x) as a sum of two numbers.
func logPair(x float64) (hi, lo float64) {
	bits := math.Float64bits(x)
	if bits < 1<<52 {
		bits = math.Float64bits(x*0x1p54) - 54<<52
	}
	w, r, rest := logParts(bits)

	// ln(1+r) = r - r²/2 + r³ * cubic, the square with its rounding error.
	r2 := float64(r * r)
	square := productError(r, r, r2)
	r4 := r2 * r2
	cubic := 1.0/3 - float64(r*(1.0/4)) + float64(r2*(1.0/5-float64(r*(1.0/6)))) +
		float64(r4*(1.0/7-float64(r*(1.0/8))+float64(r2*(1.0/9-float64(r*(1.0/10))))+float64(r4*(1.0/11))))

	a := w + r
	lostA := w - a + r
	b := a - float64(0.5*r2)
	lostB := a - b - float64(0.5*r2)
	tail := lostA + lostB + rest - float64(0.5*square) + float64(float64(r*r2)*cubic)
	hi = b + tail
	return hi, b - hi + tail
}

// productError returns x*y-p exactly, where p is x*y rounded, if nothing underflows.
func productError(x, y, p float64) float64 {
	x1 := math.Float64frombits(math.Float64bits(x) >> 27 << 27)
	y1 := math.Float64frombits(math.Float64bits(y) >> 27 << 27)
	x2, y2 := x-x1, y-y1
	return float64(x1*y1) - p + float64(x1*y2) + float64(x2*y1) + float64(x2*y2)
}
