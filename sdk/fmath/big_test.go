package fmath

import "math/big"

// Reference implementations of elementary functions in math/big.

const bigPrec = 400

func newBig() *big.Float                   { return new(big.Float).SetPrec(bigPrec) }
func bigFloat(f float64) *big.Float        { return newBig().SetFloat64(f) }
func mul(x, y *big.Float) *big.Float       { return newBig().Mul(x, y) }
func quo(x, y *big.Float) *big.Float       { return newBig().Quo(x, y) }
func sub(x, y *big.Float) *big.Float       { return newBig().Sub(x, y) }
func add(x, y *big.Float) *big.Float       { return newBig().Add(x, y) }
func shift(x *big.Float, n int) *big.Float { return newBig().SetMantExp(x, n) }

// small reports whether adding x to a sum of about 1 no longer changes it.
func small(x *big.Float) bool {
	return x.Sign() == 0 || x.MantExp(nil) < -bigPrec
}

// bigExp returns e^x: the Taylor series of x/2^n, squared n times.
func bigExp(x *big.Float) *big.Float {
	const halvings = 24
	n := halvings + max(0, x.MantExp(nil))
	z := shift(x, -n)
	sum, term := bigFloat(1), bigFloat(1)
	for i := 1; ; i++ {
		term = quo(mul(term, z), bigFloat(float64(i)))
		if small(term) {
			break
		}
		sum = add(sum, term)
	}
	for range n {
		sum = mul(sum, sum)
	}
	return sum
}

var bigLn2 = atanhLog(bigFloat(2))

// bigLog returns the natural logarithm of x > 0.
func bigLog(x *big.Float) *big.Float {
	m := newBig()
	e := x.MantExp(m) // m in [0.5, 1)
	if m.Cmp(bigFloat(0.7)) < 0 {
		m, e = shift(m, 1), e-1
	}
	return add(mul(bigLn2, bigFloat(float64(e))), atanhLog(m))
}

// atanhLog returns ln(x) = 2 atanh((x-1)/(x+1)) by its series.
func atanhLog(x *big.Float) *big.Float {
	q := quo(sub(x, bigFloat(1)), add(x, bigFloat(1)))
	q2 := mul(q, q)
	sum, power := newBig().Set(q), q
	for i := 3; q.Sign() != 0; i += 2 {
		power = mul(power, q2)
		if power.MantExp(nil) < q.MantExp(nil)-bigPrec {
			break
		}
		sum = add(sum, quo(power, bigFloat(float64(i))))
	}
	return shift(sum, 1)
}
