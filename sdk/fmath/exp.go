package fmath

import "math"

// Both exponentials reduce to 2^(k/128) * e^z with |z| <= ln(2)/256, where k is a
// whole number. A table provides the first factor; six terms of the Taylor series
// provide the second (the seventh is below 2^-60). The table also stores the rounding
// error of its entries, so that only the last addition rounds visibly.

const (
	expSteps = 1 << expBits // table entries for one doubling
	expBits  = 7

	// Adding and subtracting roundShift rounds to the nearest whole number if that
	// has less than 51 bits, and leaves it in the low bits of the sum.
	roundShift = 3 << 51
)

// Exp returns e^x, with the special values of math.Exp.
func Exp(x float64) float64 {
	if !(x > -700 && x < 709) {
		return expEdge(x)
	}
	shifted := float64(x*expPerStep) + roundShift
	k := int64(math.Float64bits(shifted)) << 13 >> 13
	n := shifted - roundShift
	z := x - float64(n*expStepHi) - float64(n*expStepLo)
	z2 := z * z
	p := z + float64(z2*(1.0/2+float64(z*(1.0/6)))) + float64(float64(z2*z2)*(1.0/24+float64(z*(1.0/120))))
	e := &expTable[k&(expSteps-1)]
	scale := math.Float64frombits(e.bits + uint64(k>>expBits)<<52)
	return scale + float64(scale*(e.tail+p))
}

// Exp10 returns 10^x, with the special values of Exp.
func Exp10(x float64) float64 {
	if !(x > -304 && x < 308) {
		return exp10Edge(x)
	}
	shifted := float64(x*exp10PerStep) + roundShift
	k := int64(math.Float64bits(shifted)) << 13 >> 13
	n := shifted - roundShift
	r := x - float64(n*exp10StepHi) - float64(n*exp10StepLo)
	r2 := r * r
	p := float64(r*exp10C1) + float64(r2*(exp10C2+float64(r*exp10C3))) + float64(float64(r2*r2)*(exp10C4+float64(r*exp10C5)))
	e := &expTable[k&(expSteps-1)]
	scale := math.Float64frombits(e.bits + uint64(k>>expBits)<<52)
	return scale + float64(scale*(e.tail+p))
}

// expEdge returns Exp(x) if the result is NaN, infinite, zero, subnormal, or close to
// that.
func expEdge(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 720:
		return math.Inf(1)
	case x < -750:
		return 0
	}
	return expScale(expParts(x, 0))
}

// exp10Edge returns Exp10(x) for the same cases as expEdge.
func exp10Edge(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 310:
		return math.Inf(1)
	case x < -325:
		return 0
	}
	shifted := float64(x*exp10PerStep) + roundShift
	n := shifted - roundShift
	r := x - float64(n*exp10StepHi) - float64(n*exp10StepLo)
	r2 := r * r
	p := float64(r*exp10C1) + float64(r2*(exp10C2+float64(r*exp10C3))) + float64(float64(r2*r2)*(exp10C4+float64(r*exp10C5)))
	return expScale(int64(n), p)
}

// expParts returns k and p with e^(x+lo) = 2^(k/128) * (1+p), where lo is below
// the precision of x.
func expParts(x, lo float64) (k int64, p float64) {
	shifted := float64(x*expPerStep) + roundShift
	n := shifted - roundShift
	z := x - float64(n*expStepHi) - float64(n*expStepLo) + lo
	z2 := z * z
	p = z + float64(z2*(1.0/2+float64(z*(1.0/6)))) + float64(float64(z2*z2)*(1.0/24+float64(z*(1.0/120))))
	return int64(n), p
}

// expScale returns 2^(k/128) * (1+p) if a float64 may not hold the result with full
// precision: it computes far from the limit and scales last.
func expScale(k int64, p float64) float64 {
	e := &expTable[k&(expSteps-1)]
	m := math.Float64frombits(e.bits)
	y := m + float64(m*(e.tail+p)) // in [1, 2], or a hair beside it
	exponent := k >> expBits
	if exponent > 0 {
		return float64(y * 0x1p100 * power2(exponent-100))
	}
	return float64(y * power2(exponent+100) * 0x1p-100)
}

// power2 returns 2^n for n in [-1022, 1023].
func power2(n int64) float64 { return math.Float64frombits(uint64(n+1023) << 52) }
