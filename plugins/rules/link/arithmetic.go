package link

import (
	"math"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// doubleOps maps operations on doubles to their instructions.
var doubleOps = map[ir.Op]byte{
	ir.Add: encoding.OpF64Add, ir.Sub: encoding.OpF64Sub, ir.Mul: encoding.OpF64Mul, ir.Div: encoding.OpF64Div,
	ir.Neg: encoding.OpF64Neg, ir.Min: encoding.OpF64Min, ir.Max: encoding.OpF64Max, ir.Abs: encoding.OpF64Abs,
	ir.Floor: encoding.OpF64Floor, ir.Ceil: encoding.OpF64Ceil, ir.Sqrt: encoding.OpF64Sqrt,
}

// arithmetic pushes the result of an operation on numbers.
func (f *function) arithmetic(n *ir.Node, failed encoding.Label) {
	switch {
	case n.Op == ir.Div && n.Args[0].Type == schema.Duration && n.Type == schema.Double:
		for _, a := range n.Args {
			f.expression(a, failed)
			f.Op(encoding.OpF64ConvertS)
		}
		f.Op(encoding.OpF64Div)
	case n.Op == ir.ToDouble:
		f.arguments(n, failed)
		f.Op(encoding.OpF64ConvertS)
	case n.Op == ir.ToInt:
		f.arguments(n, failed)
		f.truncated(failed)
	case n.Op == ir.Mul && n.Args[1].Type == schema.Double && n.Type == schema.Duration:
		f.expression(n.Args[0], failed)
		f.Op(encoding.OpF64ConvertS)
		f.expression(n.Args[1], failed)
		f.Op(encoding.OpF64Mul)
		f.truncated(failed)
	case n.Op == ir.Exp || n.Op == ir.Log || n.Op == ir.Pow:
		f.arguments(n, failed)
		f.call(map[ir.Op]string{ir.Exp: "rule_exp", ir.Log: "rule_log", ir.Pow: "rule_pow"}[n.Op], transcendental[n.Op])
	case n.Type == schema.Double:
		f.arguments(n, failed)
		f.Op(doubleOps[n.Op])
	default:
		f.whole(n, failed)
	}
}

// truncated replaces a double by a whole number, towards zero, as CEL does: its limits are
// exclusive. NaN is not below any limit.
func (f *function) truncated(failed encoding.Label) {
	x := f.Local(encoding.F64)
	f.Tee(x)
	f.Op(encoding.OpF64Abs)
	f.F64(1 << 63)
	f.Op(encoding.OpF64Lt, encoding.OpI32Eqz)
	f.BrIf(failed)
	f.Get(x)
	f.Op(encoding.OpI64TruncF64)
	f.Free(encoding.F64, x)
}

// whole pushes the result of arithmetic on whole numbers. Checks are written only where the
// ranges of the operands require them.
func (f *function) whole(n *ir.Node, failed encoding.Label) {
	if n.Op == ir.Sub && n.Overflows() && n.Args[0].Op == ir.Now {
		f.sinceNow(n.Args[1], failed)
		return
	}
	if (n.Op == ir.Add || n.Op == ir.Sub) && n.Overflows() && (n.Args[0].Op == ir.Const || n.Args[1].Op == ir.Const) {
		f.sumWithConstant(n, failed)
		return
	}
	a, b, result := f.Local(encoding.I64), f.Local(encoding.I64), f.Local(encoding.I64)
	f.arguments(n, failed)
	switch n.Op {
	case ir.Add, ir.Sub:
		f.sum(n, a, b, result, failed)
	case ir.Mul:
		if !n.Overflows() {
			f.Op(encoding.OpI64Mul)
			break
		}
		f.Set(b)
		f.Set(a)
		f.product(a, b, result, failed)
	case ir.Div, ir.Mod:
		f.Set(b)
		f.Set(a)
		f.quotient(n, a, b, failed)
	case ir.Whole:
		f.I64(n.N)
		f.Op(encoding.OpI64DivS)
	case ir.Neg:
		f.negated(n, a, failed)
	case ir.Abs:
		f.Tee(a)
		f.I64(0)
		f.Op(encoding.OpI64LtS)
		f.Block(encoding.OpIf, encoding.I64)
		f.Get(a)
		f.negated(n, a, failed)
		f.Op(encoding.OpElse)
		f.Get(a)
		f.End()
	case ir.Min, ir.Max:
		f.Set(b)
		f.Set(a)
		f.Get(a)
		f.Get(b)
		f.Get(a)
		f.Get(b)
		f.Op(map[ir.Op]byte{ir.Min: encoding.OpI64LtS, ir.Max: encoding.OpI64GtS}[n.Op], encoding.OpSelect)
	}
	for _, local := range []uint32{a, b, result} {
		f.Free(encoding.I64, local)
	}
}

// sumWithConstant pushes a sum or difference of which one operand is a constant. The other
// one exceeds a limit on one side alone.
func (f *function) sumWithConstant(n *ir.Node, failed encoding.Label) {
	variable, c := n.Args[0], n.Args[1]
	isFirst := variable.Op == ir.Const
	if isFirst {
		variable, c = c, variable
	}
	x := f.Local(encoding.I64)
	f.expression(variable, failed)
	f.Tee(x)
	limit, beyond := limitOf(n.Op, isFirst, c.N)
	f.I64(limit)
	f.Op(beyond)
	f.BrIf(failed)
	op := byte(encoding.OpI64Add)
	if n.Op == ir.Sub {
		op = encoding.OpI64Sub
	}
	if isFirst {
		f.I64(c.N)
		f.Get(x)
	} else {
		f.Get(x)
		f.I64(c.N)
	}
	f.Op(op)
	f.Free(encoding.I64, x)
}

// limitOf returns the last operand with which a sum or difference stays within 64 bits, and
// the comparison that is true of those beyond it.
func limitOf(op ir.Op, constantIsFirst bool, c int64) (limit int64, beyond byte) {
	switch {
	case op == ir.Add && c >= 0:
		return math.MaxInt64 - c, encoding.OpI64GtS
	case op == ir.Add:
		return math.MinInt64 - c, encoding.OpI64LtS
	case constantIsFirst && c >= 0:
		return c - math.MaxInt64, encoding.OpI64LtS
	case constantIsFirst:
		return c - math.MinInt64, encoding.OpI64GtS
	case c >= 0:
		return math.MinInt64 + c, encoding.OpI64LtS
	}
	return math.MaxInt64 + c, encoding.OpI64GtS
}

// Keys of function.values that are no offsets of rule_inputs.
const (
	earliestStart = 1<<31 + iota
	startSpan
)

// sinceNow pushes now minus a time. The difference has no value unless the time is between
// limits that are the same for all rows. One comparison checks both: a time below the lower
// one is far above it without its sign.
func (f *function) sinceNow(time *ir.Node, failed encoding.Label) {
	start := f.Local(encoding.I64)
	f.expression(time, failed)
	f.Tee(start)
	f.value(earliestStart, encoding.I64, f.earliestStart)
	f.Op(encoding.OpI64Sub)
	f.value(startSpan, encoding.I64, func() {
		f.I64(math.MaxInt64)
		f.input(encoding.OpI64Load, offNow)
		f.I64(math.MinInt64)
		f.Op(encoding.OpI64Sub)
		f.nowIsPositive()
		f.Op(encoding.OpSelect)
		f.earliestStart()
		f.Op(encoding.OpI64Sub)
	})
	f.Op(encoding.OpI64GtU)
	f.BrIf(failed)
	f.now()
	f.Get(start)
	f.Op(encoding.OpI64Sub)
	f.Free(encoding.I64, start)
}

// earliestStart pushes the lowest number that can be subtracted from now.
func (f *function) earliestStart() {
	f.input(encoding.OpI64Load, offNow)
	f.I64(math.MaxInt64)
	f.Op(encoding.OpI64Sub)
	f.I64(math.MinInt64)
	f.nowIsPositive()
	f.Op(encoding.OpSelect)
}

func (f *function) nowIsPositive() {
	f.input(encoding.OpI64Load, offNow)
	f.I64(0)
	f.Op(encoding.OpI64GeS)
}

// sum adds or subtracts the two values on the stack. An operation has overflowed if the
// sign of the result is that of neither operand (of a difference, b counts inverted).
func (f *function) sum(n *ir.Node, a, b, result uint32, failed encoding.Label) {
	op := byte(encoding.OpI64Add)
	if n.Op == ir.Sub {
		op = encoding.OpI64Sub
	}
	if !n.Overflows() {
		f.Op(op)
		return
	}
	f.Set(b)
	f.Tee(a)
	f.Get(b)
	f.Op(op)
	f.Tee(result)
	f.Get(a)
	f.Op(encoding.OpI64Xor)
	other := result // (a^result) & (b^result) of a sum, (a^result) & (a^b) of a difference
	if n.Op == ir.Sub {
		other = a
	}
	f.Get(b)
	f.Get(other)
	f.Op(encoding.OpI64Xor, encoding.OpI64And)
	f.I64(0)
	f.Op(encoding.OpI64LtS)
	f.BrIf(failed)
	f.Get(result)
}

// product multiplies a and b. Factors of 32 bits need no further check. Otherwise the
// product divided by one factor must be the other.
func (f *function) product(a, b, result uint32, failed encoding.Label) {
	f.Get(a)
	f.Get(b)
	f.Op(encoding.OpI64Mul)
	f.Set(result)
	f.small(a)
	f.small(b)
	f.Op(encoding.OpI32And, encoding.OpI32Eqz)
	f.Block(encoding.OpIf, encoding.NoResult)
	for _, pair := range [][2]uint32{{a, b}, {b, a}} {
		f.isMinimumByMinusOne(pair[0], pair[1])
		f.BrIf(failed)
	}
	f.Get(a)
	f.I64(0)
	f.Op(encoding.OpI64Ne)
	f.Get(a)
	f.I64(-1)
	f.Op(encoding.OpI64Ne, encoding.OpI32And)
	f.Block(encoding.OpIf, encoding.NoResult)
	f.Get(result)
	f.Get(a)
	f.Op(encoding.OpI64DivS)
	f.Get(b)
	f.Op(encoding.OpI64Ne)
	f.BrIf(failed)
	f.End()
	f.End()
	f.Get(result)
}

// small pushes whether a value has at most 32 bits.
func (f *function) small(local uint32) {
	f.Get(local)
	f.I64(1 << 31)
	f.Op(encoding.OpI64Add)
	f.I64(32)
	f.Op(encoding.OpI64ShrU, encoding.OpI64Eqz)
}

func (f *function) isMinimumByMinusOne(a, b uint32) {
	f.Get(a)
	f.I64(math.MinInt64)
	f.Op(encoding.OpI64Eq)
	f.Get(b)
	f.I64(-1)
	f.Op(encoding.OpI64Eq, encoding.OpI32And)
}

// quotient divides a by b. Only a division by zero, and of the lowest number by -1, have
// no value.
func (f *function) quotient(n *ir.Node, a, b uint32, failed encoding.Label) {
	f.Get(b)
	f.Op(encoding.OpI64Eqz)
	f.isMinimumByMinusOne(a, b)
	f.Op(encoding.OpI32Or)
	f.BrIf(failed)
	f.Get(a)
	f.Get(b)
	if n.Op == ir.Div {
		f.Op(encoding.OpI64DivS)
	} else {
		f.Op(encoding.OpI64RemS)
	}
}

// negated negates the value on the stack. The lowest number has no negation.
func (f *function) negated(n *ir.Node, a uint32, failed encoding.Label) {
	f.Set(a)
	if n.Args[0].Range().Low == math.MinInt64 {
		f.Get(a)
		f.I64(math.MinInt64)
		f.Op(encoding.OpI64Eq)
		f.BrIf(failed)
	}
	f.I64(0)
	f.Get(a)
	f.Op(encoding.OpI64Sub)
}
