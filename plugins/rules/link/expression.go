package link

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// valueType returns the type in which a value is computed. A text is its address and length.
func valueType(t schema.Type) encoding.ValueType {
	switch t {
	case schema.Bool:
		return encoding.I32
	case schema.Double:
		return encoding.F64
	}
	return encoding.I64
}

// expression pushes the value of an expression. If it has none, the code branches to
// failed.
func (f *function) expression(n *ir.Node, failed encoding.Label) {
	switch n.Op {
	case ir.Const:
		f.constant(n)
	case ir.Now:
		f.now()
	case ir.Load:
		f.load(n.Field)
	case ir.LoadMap:
		f.loadKey(n, failed)
	case ir.HasKey:
		f.hasKey(n)
	case ir.And, ir.Or:
		f.logical(n, failed)
	case ir.Not:
		f.expression(n.Args[0], failed)
		f.Op(encoding.OpI32Eqz)
	case ir.Cond:
		f.expression(n.Args[0], failed)
		f.Block(encoding.OpIf, valueType(n.Type))
		f.expression(n.Args[1], failed)
		f.Op(encoding.OpElse)
		f.expression(n.Args[2], failed)
		f.End()
	case ir.In:
		f.in(n, failed)
	case ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge:
		f.comparison(n, failed)
	case ir.StartsWith, ir.EndsWith, ir.Contains:
		f.arguments(n, failed)
		f.search(n)
	default:
		f.arithmetic(n, failed)
	}
}

func (f *function) arguments(n *ir.Node, failed encoding.Label) {
	for _, a := range n.Args {
		f.expression(a, failed)
	}
}

func (f *function) constant(n *ir.Node) {
	switch n.Type {
	case schema.Bool:
		f.I32(int32(n.N))
	case schema.Double:
		f.F64(n.X)
	case schema.String:
		f.I64(int64(f.text(n.Text))<<32 | int64(len(n.Text)))
	default:
		f.I64(n.N)
	}
}

// now pushes the time of the decision.
func (f *function) now() {
	f.value(offNow, encoding.I64, func() { f.input(encoding.OpI64Load, offNow) })
}

// load pushes the value of a field.
func (f *function) load(field int) {
	s := &schema.Fields[field]
	offset := f.field(field)
	if s.Element == schema.First {
		f.value(offset, valueType(s.Type), func() {
			f.input(encoding.OpI32Load, offset)
			f.read(s)
		})
		return
	}
	f.column(offset)
	f.offset(s.Element, s.Form)
	f.read(s)
}

// read replaces the address of an element by its value.
func (f *function) read(s *schema.Field) {
	switch s.Form {
	case schema.I32:
		f.Memory(encoding.OpI64Load32S, 0)
	case schema.U8:
		f.Memory(encoding.OpI32Load8U, 0)
		if s.Type == schema.Int {
			f.Op(encoding.OpI64ExtendU)
			return
		}
		f.I32(0)
		f.Op(encoding.OpI32Ne)
	case schema.F64:
		f.Memory(encoding.OpF64Load, 0)
	case schema.I64, schema.Packed:
		f.Memory(encoding.OpI64Load, 0)
	case schema.ID:
		f.Memory(encoding.OpI32Load, 0)
		f.call("rule_text", textTicks)
	case schema.NameID:
		f.Memory(encoding.OpI32Load, 0)
		f.call("rule_name", nameTicks)
	}
}

// offset adds the position of an element to the address of its column.
func (f *function) offset(e schema.Element, form schema.Form) {
	switch e {
	case schema.PerRow:
		f.Get(f.offsetOf(form.Size()))
		f.Op(encoding.OpI32Add)
	case schema.PerOption:
		f.scaled(f.option, form.Size())
		f.Op(encoding.OpI32Add)
	}
}

// loadKey pushes the value of a key of a map.
func (f *function) loadKey(n *ir.Node, failed encoding.Label) {
	m := &schema.Maps[n.Field]
	switch {
	case m.Form == schema.Packed:
		text := f.Local(encoding.I64)
		f.label(n)
		f.Tee(text)
		f.Op(encoding.OpI64Eqz)
		f.BrIf(failed)
		f.Get(text)
		f.Free(encoding.I64, text)
	case m.Optional:
		at, x := f.Local(encoding.I32), f.Local(encoding.F64)
		f.keyColumn(n)
		f.Tee(at)
		f.Op(encoding.OpI32Eqz)
		f.BrIf(failed)
		f.annotation(m, at)
		f.number(x, failed)
		f.Get(x)
		f.Free(encoding.I32, at)
		f.Free(encoding.F64, x)
	default:
		f.keyColumn(n)
		f.offset(m.Element, m.Form)
		f.Memory(encoding.OpF64Load, 0)
	}
}

// keyColumn pushes the address of the column of a key, or 0.
func (f *function) keyColumn(n *ir.Node) {
	f.column(offLookups + 4*uint32(f.lookup(n.Field, n.Key)))
}

// annotation pushes an annotation of the column whose address is in a local.
func (f *function) annotation(m *schema.Map, at uint32) {
	f.Get(at)
	f.offset(m.Element, m.Form)
	f.Memory(encoding.OpF64Load, 0)
}

// label pushes the label of a key, or 0.
func (f *function) label(n *ir.Node) {
	f.I32(int32(f.lookup(n.Field, n.Key)))
	if schema.Maps[n.Field].Element == schema.PerRow {
		f.Get(f.offsetOf(1))
	} else {
		f.I32(-1)
	}
	f.call("rule_label", labelTicks(len(n.Key)))
}

// hasKey pushes whether a map has a key. NaN means that a row has no annotation.
func (f *function) hasKey(n *ir.Node) {
	m := &schema.Maps[n.Field]
	if m.Form == schema.Packed {
		f.label(n)
		f.I64(0)
		f.Op(encoding.OpI64Ne)
		return
	}
	at := f.Local(encoding.I32)
	f.keyColumn(n)
	f.Tee(at)
	f.Block(encoding.OpIf, encoding.I32)
	f.annotation(m, at)
	f.annotation(m, at)
	f.Op(encoding.OpF64Eq, encoding.OpElse)
	f.I32(0)
	f.End()
	f.Free(encoding.I32, at)
}

// logical pushes the result of && or ||. As in CEL, the side that decides alone does so
// even if the other has no value.
func (f *function) logical(n *ir.Node, failed encoding.Label) {
	decides := int32(0) // the value of a side that decides
	if n.Op == ir.Or {
		decides = 1
	}
	left, right := n.Args[0], n.Args[1]
	if !left.Partial() {
		f.expression(left, failed)
		f.Block(encoding.OpIf, encoding.I32)
		if n.Op == ir.And {
			f.expression(right, failed)
			f.Op(encoding.OpElse)
			f.I32(0)
		} else {
			f.I32(1)
			f.Op(encoding.OpElse)
			f.expression(right, failed)
		}
		f.End()
		return
	}
	const none = 2
	state := f.Local(encoding.I32)
	f.I32(none)
	f.Set(state)
	without := f.Block(encoding.OpBlock, encoding.NoResult)
	f.expression(left, without)
	f.Set(state)
	f.End()
	f.Get(state)
	f.I32(decides)
	f.Op(encoding.OpI32Eq)
	f.Block(encoding.OpIf, encoding.I32)
	f.I32(decides)
	f.Op(encoding.OpElse)
	f.expression(right, failed)
	f.I32(decides)
	f.Op(encoding.OpI32Eq)
	f.Block(encoding.OpIf, encoding.I32)
	f.I32(decides)
	f.Op(encoding.OpElse)
	f.Get(state)
	f.I32(none)
	f.Op(encoding.OpI32Eq)
	f.BrIf(failed)
	f.I32(1 - decides)
	f.End()
	f.End()
	f.Free(encoding.I32, state)
}

// in pushes whether a value is in a list of constants.
func (f *function) in(n *ir.Node, failed encoding.Label) {
	t := valueType(n.Args[0].Type)
	x := f.Local(t)
	f.expression(n.Args[0], failed)
	f.Set(x)
	f.I32(0)
	lengths := map[int]int{} // ticks for comparing the bytes of the constants of a length
	for _, c := range n.Args[1:] {
		f.Get(x)
		f.constant(c)
		f.equal(n.Args[0].Type, 0)
		f.Op(encoding.OpI32Or)
		lengths[len(c.Text)] += bytesTicks(len(c.Text))
	}
	if t := n.Args[0].Type; t == schema.String && len(lengths) > 0 { // one length at most is that of the value
		f.Charge(slices.Max(slices.Collect(maps.Values(lengths))))
	}
	f.Free(t, x)
}

// equal compares two values on the stack. If they are texts, ticks are those for their bytes.
func (f *function) equal(t schema.Type, ticks int) {
	switch t {
	case schema.String:
		f.call("rule_same", sameTicks+ticks)
	case schema.Bool:
		f.Op(encoding.OpI32Eq)
	case schema.Double:
		f.Op(encoding.OpF64Eq)
	default:
		f.Op(encoding.OpI64Eq)
	}
}

// comparisons maps an order to the instructions for whole numbers and doubles.
var comparisons = map[ir.Op][2]byte{
	ir.Lt: {encoding.OpI64LtS, encoding.OpF64Lt}, ir.Le: {encoding.OpI64LeS, encoding.OpF64Le},
	ir.Gt: {encoding.OpI64GtS, encoding.OpF64Gt}, ir.Ge: {encoding.OpI64GeS, encoding.OpF64Ge},
}

// opposites maps a comparison to its opposite, for whole numbers.
var opposites = map[ir.Op]byte{
	ir.Lt: encoding.OpI64GeS, ir.Le: encoding.OpI64GtS, ir.Gt: encoding.OpI64LeS, ir.Ge: encoding.OpI64LtS,
	ir.Eq: encoding.OpI64Ne, ir.Ne: encoding.OpI64Eq,
}

// require branches to failed unless a condition is true. Both sides of && must be, so that
// it does not matter whether the other one has a value.
func (f *function) require(n *ir.Node, failed encoding.Label) {
	opposite, isComparison := opposites[n.Op]
	switch {
	case n.Op == ir.And:
		f.require(n.Args[0], failed)
		f.require(n.Args[1], failed)
		return
	case isComparison && n.Args[0].Type.IsWhole():
		f.arguments(n, failed)
		f.Op(opposite)
	default:
		f.expression(n, failed)
		f.Op(encoding.OpI32Eqz)
	}
	f.BrIf(failed)
}

// comparison pushes the result of a comparison. NaN is unequal to everything, and has no
// order.
func (f *function) comparison(n *ir.Node, failed encoding.Label) {
	t := n.Args[0].Type
	switch {
	case n.Op == ir.Eq || n.Op == ir.Ne:
		f.arguments(n, failed)
		ticks := 0
		if t == schema.String {
			ticks = min(partTicks(n.Args[0], n.Args[1]), partTicks(n.Args[1], n.Args[0]))
		}
		f.equal(t, ticks)
		if n.Op == ir.Ne {
			f.Op(encoding.OpI32Eqz)
		}
	case t == schema.Double:
		x, y := f.Local(encoding.F64), f.Local(encoding.F64)
		f.expression(n.Args[0], failed)
		f.number(x, failed)
		f.expression(n.Args[1], failed)
		f.number(y, failed)
		f.Get(x)
		f.Get(y)
		f.Op(comparisons[n.Op][1])
		f.Free(encoding.F64, x)
		f.Free(encoding.F64, y)
	default:
		f.arguments(n, failed)
		f.Op(comparisons[n.Op][0])
	}
}
