package metrics

import "math/bits"

// integral is an exact sum of amount × nanoseconds. The memory of a cluster over a
// month overflows 64 bits, and a floating-point sum would depend on how often it is
// updated.
type integral struct{ hi, lo uint64 }

// add adds amount × dt. If amount is negative, it counts as zero.
func (i *integral) add(amount, dt int64) {
	if amount <= 0 || dt <= 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(amount), uint64(dt))
	i.plus(integral{hi, lo})
}

func (i *integral) plus(o integral) {
	var carry uint64
	i.lo, carry = bits.Add64(i.lo, o.lo, 0)
	i.hi, _ = bits.Add64(i.hi, o.hi, carry)
}

// minus subtracts o and stops at zero.
func (i *integral) minus(o integral) {
	lo, borrow := bits.Sub64(i.lo, o.lo, 0)
	hi, under := bits.Sub64(i.hi, o.hi, borrow)
	if under != 0 {
		hi, lo = 0, 0
	}
	i.hi, i.lo = hi, lo
}

func (i integral) zero() bool { return i.hi == 0 && i.lo == 0 }

// float returns the value in amount × nanoseconds. The multiplication by a power of
// two is exact, so there is one rounding on every machine.
func (i integral) float() float64 {
	high := float64(float64(i.hi) * (1 << 64))
	return high + float64(i.lo)
}

// seconds returns the value in amount × seconds.
func (i integral) seconds() float64 { return i.float() / 1e9 }

// ratio returns i/o, or 0 if o is zero.
func (i integral) ratio(o integral) float64 {
	if o.zero() {
		return 0
	}
	return i.float() / o.float()
}
