package link

import (
	"math"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// recheckAfter is the time to the next check of a comparison that is not linear in time.
const recheckAfter = 60e9

// The time until the earliest change, in nanoseconds, is collected in a local without its
// sign, reduced by one: what is negative never happens, and counts as far away.

// never returns the local with the time until the earliest change, which no row has yet.
func (f *function) never() uint32 {
	least := f.Lasting(encoding.I64)
	f.Early(func() {
		f.I64(-1)
		f.Set(least)
	})
	return least
}

// rechecks collects the time at which a comparison changes, for a row that is not eligible
// but has a lower priority than the preemptor.
func (f *function) rechecks(turns []ir.Turn, least uint32) {
	if len(turns) == 0 {
		return
	}
	f.load(schema.Lookup("victim.priority"))
	f.load(schema.Lookup("preemptor.priority"))
	f.Op(encoding.OpI64LtS)
	f.Block(encoding.OpIf, encoding.NoResult)
	wait := f.Local(encoding.I64)
	for _, t := range turns {
		never := f.Block(encoding.OpBlock, encoding.NoResult)
		f.wait(t, never)
		f.Tee(wait)
		f.Get(least)
		f.Op(encoding.OpI64LtU)
		f.Block(encoding.OpIf, encoding.NoResult)
		f.Get(wait)
		f.Set(least)
		f.End()
		f.End()
	}
	f.Free(encoding.I64, wait)
	f.End()
}

// wait pushes the time until a comparison changes, reduced by one. It branches to never, or
// the time is negative, if the comparison does not change.
func (f *function) wait(t ir.Turn, never encoding.Label) {
	if t.Slope == 0 {
		f.I64(recheckAfter - 1)
		return
	}
	// The distance of the left side from the right one falls by the absolute slope in each
	// nanosecond.
	left, right := t.Args[0], t.Args[1]
	if t.Slope < 0 {
		left, right = right, left
	}
	f.difference(right, left, never)
	// The comparison changes when the sides are equal, or one nanosecond behind.
	beyond := t.Op == ir.Gt || t.Op == ir.Le
	if t.Slope < 0 {
		beyond = t.Op == ir.Lt || t.Op == ir.Ge
	}
	if steps := max(t.Slope, -t.Slope); steps > 1 {
		f.divided(steps, !beyond, never)
	}
	switch {
	case beyond:
	case t.Op == ir.Eq || t.Op == ir.Ne: // not now
		distance := f.Local(encoding.I64)
		f.Tee(distance)
		f.Get(distance)
		f.I64(0)
		f.Op(encoding.OpI64Ne, encoding.OpI64ExtendU, encoding.OpI64Sub)
		f.Free(encoding.I64, distance)
	default: // sides that are equal have changed already
		f.I64(1)
		f.Op(encoding.OpI64Sub)
	}
}

// divided replaces a distance by the time in which it falls to zero, rounded down or up. It
// branches to never if the distance is negative.
func (f *function) divided(steps int64, up bool, never encoding.Label) {
	distance := f.Local(encoding.I64)
	f.Tee(distance)
	f.I64(0)
	f.Op(encoding.OpI64LtS)
	f.BrIf(never)
	f.Get(distance)
	f.I64(steps)
	f.Op(encoding.OpI64DivS)
	if up {
		f.Get(distance)
		f.I64(steps)
		f.Op(encoding.OpI64RemS)
		f.I64(0)
		f.Op(encoding.OpI64Ne, encoding.OpI64ExtendU, encoding.OpI64Add)
	}
	f.Free(encoding.I64, distance)
}

// difference pushes a - b, and fails if it exceeds 64 bits.
func (f *function) difference(a, b *ir.Node, failed encoding.Label) {
	f.expression(&ir.Node{Op: ir.Sub, Type: schema.Duration, Args: []*ir.Node{a, b}}, failed)
}

// request requests another evaluation at the earliest change, unless an earlier one is
// requested, or the time exceeds 64 bits.
func (f *function) request(least uint32) {
	at := f.Local(encoding.I64)
	done := f.Block(encoding.OpBlock, encoding.NoResult)
	f.Get(least)
	f.I64(math.MaxInt64)
	f.now()
	f.Op(encoding.OpI64Sub)
	f.I64(0)
	f.nowIsPositive()
	f.Op(encoding.OpSelect, encoding.OpI64GeU)
	f.BrIf(done)
	f.Get(least)
	f.now()
	f.Op(encoding.OpI64Add)
	f.I64(1)
	f.Op(encoding.OpI64Add)
	f.Set(at)
	f.Get(paramSecond)
	f.Memory(encoding.OpI64Load, 0)
	f.Op(encoding.OpI64Eqz)
	f.Get(at)
	f.Get(paramSecond)
	f.Memory(encoding.OpI64Load, 0)
	f.Op(encoding.OpI64LtS, encoding.OpI32Or, encoding.OpI32Eqz)
	f.BrIf(done)
	f.Get(paramSecond)
	f.Get(at)
	f.Memory(encoding.OpI64Store, 0)
	f.End()
	f.Free(encoding.I64, at)
}
