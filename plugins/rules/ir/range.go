package ir

import (
	"math"
	"math/bits"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// A Range contains every value that a whole expression can have.
type Range struct{ Low, High int64 }

var full = Range{math.MinInt64, math.MaxInt64}

// Range returns the range of a whole expression. Arithmetic within it does not overflow.
func (n *Node) Range() Range {
	r, _ := n.bounds()
	return r
}

// Overflows reports whether whole arithmetic can exceed 64 bits.
func (n *Node) Overflows() bool {
	_, ok := n.bounds()
	return !ok
}

// bounds returns the range of an expression, and whether its own operation stays within 64
// bits.
func (n *Node) bounds() (Range, bool) {
	switch n.Op {
	case Const:
		return Range{n.N, n.N}, true
	case Load:
		switch schema.Fields[n.Field].Form {
		case schema.I32:
			return Range{math.MinInt32, math.MaxInt32}, true
		case schema.U8:
			return Range{0, math.MaxUint8}, true
		}
	case Neg:
		r := n.Args[0].Range()
		if r.Low > math.MinInt64 {
			return Range{-r.High, -r.Low}, true
		}
		return full, false
	case Add, Sub, Mul:
		if n.Args[0].Type.IsWhole() && n.Args[1].Type.IsWhole() {
			return combined(n.Op, n.Args[0].Range(), n.Args[1].Range())
		}
	case Cond:
		return union(n.Args[1].Range(), n.Args[2].Range()), true
	case Min, Max:
		if n.Type.IsWhole() {
			return union(n.Args[0].Range(), n.Args[1].Range()), true
		}
	}
	return full, true
}

func union(a, b Range) Range { return Range{min(a.Low, b.Low), max(a.High, b.High)} }

// combined returns the range of a sum, difference or product.
func combined(op Op, a, b Range) (Range, bool) {
	r := Range{math.MaxInt64, math.MinInt64}
	for _, x := range []int64{a.Low, a.High} {
		for _, y := range []int64{b.Low, b.High} {
			v, ok := Whole64(op, x, y)
			if !ok {
				return full, false
			}
			r = union(r, Range{v, v})
		}
	}
	return r, true
}

// Whole64 returns the result of whole arithmetic, and false if it exceeds 64 bits or
// divides by zero.
func Whole64(op Op, x, y int64) (int64, bool) {
	switch op {
	case Add:
		s := x + y
		return s, (x^s)&(y^s) >= 0
	case Sub:
		s := x - y
		return s, (x^y)&(x^s) >= 0
	case Mul:
		high, low := bits.Mul64(magnitude(x), magnitude(y))
		negative := (x < 0) != (y < 0)
		if high != 0 || low > 1<<63 || low == 1<<63 && !negative {
			return 0, false
		}
		return x * y, true
	case Div, Mod:
		if y == 0 || x == math.MinInt64 && y == -1 {
			return 0, false
		}
		if op == Div {
			return x / y, true
		}
		return x % y, true
	}
	panic("ir: not an operation of whole arithmetic")
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}
