package link

import (
	"maps"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
	"github.com/cede-scheduler/cede/sdk/policy"
)

// Parameters of the functions of rules.
const (
	paramInputs = 0
	paramFirst  = 1 // gap, tier or key
	paramSecond = 2 // recheck or score
	parameters  = 3
)

// Last is the whole value behind all others: that of an entry without a value.
const Last = math.MaxInt64

// function is a function of rules that is being written.
type function struct {
	*encoding.Body
	*linker
	option uint32 // local
	// offsets are locals that hold the row times the size of an element. stepped are the
	// sizes that are used: the loop over rows increases no others.
	offsets map[int]uint32
	stepped map[int]bool
	// values and columns are locals that are the same for all rows: the values of fields with
	// one element, and the addresses of columns, by their offset in rule_inputs.
	values, columns map[uint32]uint32

	// perRow and perOption are the fuel of one pass of the loop over rows, and of that over
	// options without its rows; entries is the part of each entry of order or option.
	perRow, perOption int
	entries           []int
}

func (l *linker) function() *function {
	f := &function{Body: encoding.NewBody(parameters), linker: l, values: map[uint32]uint32{}, columns: map[uint32]uint32{}, stepped: map[int]bool{}}
	f.option = f.Local(encoding.I32)
	f.offsets = map[int]uint32{1: f.Local(encoding.I32), 4: f.Local(encoding.I32), 8: f.Local(encoding.I32)}
	return f
}

// offsetOf returns the local with the row times the size of an element.
func (f *function) offsetOf(size int) uint32 {
	f.stepped[size] = true
	return f.offsets[size]
}

// column pushes the address of a column, which is at an offset of rule_inputs.
func (f *function) column(offset uint32) {
	local, ok := f.columns[offset]
	if !ok {
		local = f.Lasting(encoding.I32)
		f.columns[offset] = local
		f.Early(func() {
			f.input(encoding.OpI32Load, offset)
			f.Set(local)
		})
	}
	f.Get(local)
}

// value pushes a loaded value that is the same for all rows. key identifies it.
func (f *function) value(key uint32, t encoding.ValueType, load func()) {
	local, ok := f.values[key]
	if !ok {
		local = f.Lasting(t)
		f.values[key] = local
		f.Early(func() {
			load()
			f.Set(local)
		})
	}
	f.Get(local)
}

// input pushes a value of rule_inputs.
func (f *function) input(op byte, offset uint32) {
	f.Get(paramInputs)
	f.Memory(op, offset)
}

// eachOption writes a loop over options.
func (f *function) eachOption(body func()) {
	f.I32(0)
	f.Set(f.option)
	done := f.Block(encoding.OpBlock, encoding.NoResult)
	next := f.Block(encoding.OpLoop, encoding.NoResult)
	before := f.Ticks()
	f.Get(f.option)
	f.input(encoding.OpI32Load, offOptions)
	f.Op(encoding.OpI32GeS)
	f.BrIf(done)
	body()
	f.increment(f.option)
	f.Br(next)
	f.perOption = f.Ticks() - before - f.perRow
	f.End()
	f.End()
}

// eachRow writes a loop over all rows. If an expression reads values of options, it is a
// loop over options and their rows.
func (f *function) eachRow(expressions []*ir.Node, body func()) {
	if !slices.ContainsFunc(expressions, readsOption) {
		f.rows(func() { f.I32(0) }, func() { f.input(encoding.OpI32Load, offRows) }, body)
		return
	}
	f.eachOption(func() {
		f.rows(func() { f.bound(0) }, func() { f.bound(4) }, body)
	})
}

// readsOption reports whether an expression reads a value of the option of a candidate.
func readsOption(n *ir.Node) bool {
	found := false
	n.Walk(func(c *ir.Node) {
		switch c.Op {
		case ir.Load:
			found = found || schema.Fields[c.Field].Element == schema.PerOption
		case ir.LoadMap, ir.HasKey:
			found = found || schema.Maps[c.Field].Element == schema.PerOption
		}
	})
	return found
}

// rows writes a loop over the rows from first to end, which are pushed. The offsets that
// the body uses are known behind it, so that their first values are inserted before it.
func (f *function) rows(first, end, body func()) {
	limit := f.Local(encoding.I32)
	f.stepped = map[int]bool{}
	done := f.Block(encoding.OpBlock, encoding.NoResult)
	before := f.Mark()
	next := f.Block(encoding.OpLoop, encoding.NoResult)
	ticks := f.Ticks()
	body()
	sizes := slices.Sorted(maps.Keys(f.stepped))
	for _, size := range sizes {
		f.Get(f.offsets[size])
		f.I32(int32(size))
		f.Op(encoding.OpI32Add)
		f.Set(f.offsets[size])
	}
	size := sizes[len(sizes)-1]
	counter := f.offsets[size]
	f.Get(counter)
	f.Get(limit)
	f.Op(encoding.OpI32LtS)
	f.BrIf(next)
	f.perRow = f.Ticks() - ticks
	f.End()
	f.End()
	f.Insert(before, func() {
		for _, size := range sizes {
			first()
			f.scale(size)
			f.Set(f.offsets[size])
		}
		end()
		f.scale(size)
		f.Set(limit)
		f.Get(counter)
		f.Get(limit)
		f.Op(encoding.OpI32GeS)
		f.BrIf(done)
	})
	f.Free(encoding.I32, limit)
}

// bound pushes the first row of the option, or of the one that follows it.
func (f *function) bound(offset uint32) {
	f.input(encoding.OpI32Load, offFirstRow)
	f.scaled(f.option, 4)
	f.Op(encoding.OpI32Add)
	f.Memory(encoding.OpI32Load, offset)
}

func (f *function) increment(local uint32) {
	f.Get(local)
	f.I32(1)
	f.Op(encoding.OpI32Add)
	f.Set(local)
}

// scaled pushes a local times the size of an element.
func (f *function) scaled(local uint32, size int) {
	f.Get(local)
	f.scale(size)
}

// scale multiplies a position by the size of an element.
func (f *function) scale(size int) {
	if shift := map[int]int32{1: 0, 4: 2, 8: 3}[size]; shift > 0 {
		f.I32(shift)
		f.Op(encoding.OpI32Shl)
	}
}

// rowElement pushes the address of the row's element of the area at the address in a
// parameter.
func (f *function) rowElement(param uint32, size int) {
	f.Get(param)
	f.Get(f.offsetOf(size))
	f.Op(encoding.OpI32Add)
}

// eligible returns the function that sets the gap of every row.
func (l *linker) eligible() []byte {
	f := l.function()
	turns, least := l.program.Eligible.Turns(), f.never()
	f.eachRow([]*ir.Node{l.program.Eligible}, func() {
		done := f.Block(encoding.OpBlock, encoding.NoResult)
		failed := f.Block(encoding.OpBlock, encoding.NoResult)
		f.require(l.program.Eligible, failed)
		f.rowElement(paramFirst, 4)
		f.I32(0)
		f.Memory(encoding.OpI32Store, 0)
		f.Br(done)
		f.End()
		f.rowElement(paramFirst, 4)
		f.I32(policy.NeverEligible)
		f.Memory(encoding.OpI32Store, 0)
		f.rechecks(turns, least)
		f.End()
	})
	if len(turns) > 0 {
		f.request(least)
	}
	return l.finish(f)
}

// finish adds the fuel of a function to that of its hook, and returns its body.
func (l *linker) finish(f *function) []byte {
	of := &l.fuel[l.hook]
	of.Row += f.perRow
	of.Option += f.perOption
	for i, ticks := range f.entries {
		of.Entries[i] += ticks
	}
	return f.Bytes()
}

// order returns the function that writes the entries of order for every row: as tier and
// score, or if they are sorted, as one column of whole numbers for each entry.
func (l *linker) order() []byte {
	f := l.function()
	if !l.program.Sorted() {
		f.tierAndScore(f.score)
		return l.finish(f)
	}
	at := f.Local(encoding.I32)
	f.eachRow(l.program.Order, func() {
		f.rowElement(paramFirst, 8)
		f.Set(at)
		f.keys(l.program.Order, at, offRows)
	})
	return l.finish(f)
}

// tierAndScore writes the tier and the score of every row. score pushes the score of the
// second entry.
func (f *function) tierAndScore(score func(*ir.Node)) {
	entries := f.program.Order
	f.eachRow(entries, func() {
		f.rowElement(paramFirst, 8)
		f.entry(func() { f.key(entries[0]) })
		f.Memory(encoding.OpI64Store, 0)
		if len(entries) > 1 {
			f.rowElement(paramSecond, 8)
			f.entry(func() { score(entries[1]) })
			f.Memory(encoding.OpF64Store, 0)
		}
	})
}

// direct returns the function that writes two entries as tier and score although the second
// is a whole number. It returns 1 if a number would have to be rounded: then the entries
// have to be sorted.
func (l *linker) direct() []byte {
	f := l.function()
	rounded := f.Lasting(encoding.I32)
	f.tierAndScore(func(e *ir.Node) { f.wholeScore(e, rounded) })
	f.Get(rounded)
	return l.finish(f)
}

// wholeScore pushes a whole number as a score. An entry without a value comes last.
func (f *function) wholeScore(e *ir.Node, rounded uint32) {
	const exact = 1 << 53
	value := func(failed encoding.Label) {
		f.expression(e, failed)
		if e.Type == schema.Bool {
			f.Op(encoding.OpI64ExtendU)
		} else if r := e.Range(); r.Low < -exact || r.High > exact {
			k := f.Local(encoding.I64)
			f.Tee(k)
			f.I64(exact)
			f.Op(encoding.OpI64Add)
			f.I64(2 * exact)
			f.Op(encoding.OpI64GtU)
			f.Get(rounded)
			f.Op(encoding.OpI32Or)
			f.Set(rounded)
			f.Get(k)
			f.Free(encoding.I64, k)
		}
		f.Op(encoding.OpF64ConvertS)
	}
	if !e.Partial() {
		value(0) // it cannot fail
		return
	}
	f.otherwise(encoding.F64, value, func() { f.F64(math.MaxFloat64) })
}

// option returns the function that writes the tiers of every option.
func (l *linker) option() []byte {
	f := l.function()
	at := f.Local(encoding.I32)
	f.eachOption(func() {
		f.Get(paramFirst)
		f.scaled(f.option, 8)
		f.Op(encoding.OpI32Add)
		f.Set(at)
		f.keys(l.program.Option, at, offOptions)
	})
	return l.finish(f)
}

// keys writes the entries of one row or option into columns, beginning at an address. The
// length of a column is at an offset of rule_inputs.
func (f *function) keys(entries []*ir.Node, at, length uint32) {
	for i, e := range entries {
		if i > 0 {
			f.Get(at)
			f.input(encoding.OpI32Load, length)
			f.I32(3)
			f.Op(encoding.OpI32Shl, encoding.OpI32Add)
			f.Set(at)
		}
		f.Get(at)
		f.entry(func() { f.key(e) })
		f.Memory(encoding.OpI64Store, 0)
	}
}

// entry writes an entry of order or option, and records its fuel.
func (f *function) entry(write func()) {
	before := f.Ticks()
	write()
	f.entries = append(f.entries, f.Ticks()-before)
}

// key pushes the value of an entry as a whole number that sorts alike. An entry without a
// value, and NaN, comes last.
func (f *function) key(e *ir.Node) {
	if e.Type != schema.Double && !e.Partial() {
		f.expression(e, 0) // it cannot fail
		if e.Type == schema.Bool {
			f.Op(encoding.OpI64ExtendU)
		}
		return
	}
	f.otherwise(encoding.I64, func(failed encoding.Label) {
		f.expression(e, failed)
		switch e.Type {
		case schema.Bool:
			f.Op(encoding.OpI64ExtendU)
		case schema.Double:
			f.sortable(failed)
		}
	}, func() { f.I64(Last) })
}

// sortable replaces a double by a whole number that sorts alike: of a negative number, all
// bits but the sign are inverted. Adding 0 makes -0 equal to 0.
func (f *function) sortable(failed encoding.Label) {
	x, bits := f.Local(encoding.F64), f.Local(encoding.I64)
	f.number(x, failed)
	f.Get(x)
	f.F64(0)
	f.Op(encoding.OpF64Add, encoding.OpI64Reinter)
	f.Tee(bits)
	f.Get(bits)
	f.I64(63)
	f.Op(encoding.OpI64ShrS)
	f.I64(math.MaxInt64)
	f.Op(encoding.OpI64And, encoding.OpI64Xor)
	f.Free(encoding.F64, x)
	f.Free(encoding.I64, bits)
}

// number pops a double into a local, and fails if it is NaN.
func (f *function) number(x uint32, failed encoding.Label) {
	f.Tee(x)
	f.Get(x)
	f.Op(encoding.OpF64Ne)
	f.BrIf(failed)
}

// score pushes the value of a double as a finite score. An entry without a value, and NaN,
// comes last.
func (f *function) score(e *ir.Node) {
	x := f.Local(encoding.F64)
	f.otherwise(encoding.F64, func(failed encoding.Label) {
		f.expression(e, failed)
		f.number(x, failed)
		f.Get(x)
		f.F64(-math.MaxFloat64)
		f.Op(encoding.OpF64Max)
		f.F64(math.MaxFloat64)
		f.Op(encoding.OpF64Min)
	}, func() { f.F64(math.MaxFloat64) })
	f.Free(encoding.F64, x)
}

// otherwise pushes the value that value computes, or the other one if it fails.
func (f *function) otherwise(t encoding.ValueType, value func(failed encoding.Label), other func()) {
	done := f.Block(encoding.OpBlock, t)
	failed := f.Block(encoding.OpBlock, encoding.NoResult)
	value(failed)
	f.Br(done)
	f.End()
	other()
	f.End()
}
