package link

import (
	"math"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// recheckAfter is the time to the next check of a comparison that is not linear in time.
const recheckAfter = 60e9

// rechecks requests another evaluation for the time at which a comparison changes, for a
// row that is not eligible but has a lower priority than the preemptor.
func (f *function) rechecks(turns []ir.Turn) {
	if len(turns) == 0 {
		return
	}
	f.load(schema.Lookup("victim.priority"))
	f.load(schema.Lookup("preemptor.priority"))
	f.Op(encoding.OpI64LtS)
	f.Block(encoding.OpIf, encoding.NoResult)
	wait, at := f.Local(encoding.I64), f.Local(encoding.I64)
	for _, t := range turns {
		never := f.Block(encoding.OpBlock, encoding.NoResult)
		f.wait(t, wait, never)
		f.requestAt(wait, at, never)
		f.End()
	}
	f.Free(encoding.I64, wait)
	f.Free(encoding.I64, at)
	f.End()
}

// wait sets a local to the time until a comparison changes, in nanoseconds, and branches to
// never if it does not.
func (f *function) wait(t ir.Turn, wait uint32, never encoding.Label) {
	if t.Slope == 0 {
		f.I64(recheckAfter)
		f.Set(wait)
		return
	}
	// The distance of the left side from the right one falls by the absolute slope in each
	// nanosecond.
	distance := f.Local(encoding.I64)
	left, right := t.Args[0], t.Args[1]
	if t.Slope < 0 {
		left, right = right, left
	}
	f.difference(right, left, never)
	f.Tee(distance)
	f.I64(0)
	f.Op(encoding.OpI64LtS)
	f.BrIf(never)
	steps := max(t.Slope, -t.Slope)
	// The comparison changes when the sides are equal, or one nanosecond behind.
	beyond := t.Op == ir.Gt || t.Op == ir.Le
	if t.Slope < 0 {
		beyond = t.Op == ir.Lt || t.Op == ir.Ge
	}
	if !beyond && t.Op != ir.Eq && t.Op != ir.Ne {
		f.Get(distance)
		f.Op(encoding.OpI64Eqz)
		f.BrIf(never) // it has changed already
	}
	f.Get(distance)
	if steps > 1 {
		f.I64(steps)
		f.Op(encoding.OpI64DivS)
	}
	if beyond {
		f.I64(1)
		f.Op(encoding.OpI64Add)
	} else { // round up, and not to now
		if steps > 1 {
			f.Get(distance)
			f.I64(steps)
			f.Op(encoding.OpI64RemS)
			f.I64(0)
			f.Op(encoding.OpI64Ne, encoding.OpI64ExtendU, encoding.OpI64Add)
		}
		f.Get(distance)
		f.Op(encoding.OpI64Eqz, encoding.OpI64ExtendU, encoding.OpI64Add)
	}
	f.Set(wait)
	f.Free(encoding.I64, distance)
}

// difference pushes a - b, and fails if it exceeds 64 bits.
func (f *function) difference(a, b *ir.Node, failed encoding.Label) {
	f.expression(&ir.Node{Op: ir.Sub, Type: schema.Duration, Args: []*ir.Node{a, b}}, failed)
}

// requestAt requests another evaluation after a time, unless an earlier one is requested.
func (f *function) requestAt(wait, at uint32, never encoding.Label) {
	f.Get(wait)
	f.I64(math.MaxInt64)
	f.now()
	f.Op(encoding.OpI64Sub)
	f.Op(encoding.OpI64GtS)
	f.now()
	f.I64(0)
	f.Op(encoding.OpI64LtS, encoding.OpI32Or)
	f.BrIf(never)
	f.Get(wait)
	f.now()
	f.Op(encoding.OpI64Add)
	f.Set(at)
	f.Get(paramSecond)
	f.Memory(encoding.OpI64Load, 0)
	f.Op(encoding.OpI64Eqz)
	f.Get(at)
	f.Get(paramSecond)
	f.Memory(encoding.OpI64Load, 0)
	f.Op(encoding.OpI64LtS, encoding.OpI32Or, encoding.OpI32Eqz)
	f.BrIf(never)
	f.Get(paramSecond)
	f.Get(at)
	f.Memory(encoding.OpI64Store, 0)
}
