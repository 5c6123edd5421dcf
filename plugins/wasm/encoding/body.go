package encoding

import (
	"encoding/binary"
	"math"
	"slices"
)

// A Body is the body of a function that is being written.
type Body struct {
	code   []byte
	early  []byte // runs before code
	params int
	locals []ValueType
	free   map[ValueType][]uint32 // locals that are not in use
	depth  int                    // of open blocks
	ticks  int
	arms   []arms // of open blocks
}

// arms are the ticks before an if, and those of its first arm once the second has begun; both
// are 0 for other blocks.
type arms struct{ before, first int }

// NewBody returns the body of a function with the given number of parameters.
func NewBody(params int) *Body {
	return &Body{params: params, free: map[ValueType][]uint32{}}
}

// Early writes code that runs once, before all other code. It must not branch.
func (b *Body) Early(write func()) {
	code, ticks := b.code, b.ticks
	b.code = b.early
	write()
	b.code, b.early, b.ticks = code, b.code, ticks
}

// Ticks returns an upper bound of the fuel for running the code that was written so far,
// without that of Early and Insert: one tick for each instruction, and of the two arms of
// an if those of the longer one. What a loop takes is counted once.
func (b *Body) Ticks() int { return b.ticks }

// Charge adds the fuel of a called function.
func (b *Body) Charge(ticks int) { b.ticks += ticks }

// A Mark is a position in the code.
type Mark struct{ at, depth int }

// Mark returns the current position.
func (b *Body) Mark() Mark { return Mark{len(b.code), b.depth} }

// Insert writes code at a mark. Marks behind it become invalid.
func (b *Body) Insert(m Mark, write func()) {
	behind, depth := slices.Clone(b.code[m.at:]), b.depth
	b.code, b.depth = b.code[:m.at], m.depth
	write()
	b.code, b.depth = append(b.code, behind...), depth
}

// A Label is a block to which branches lead.
type Label int

// Op writes instructions without operands.
func (b *Body) Op(ops ...byte) {
	for _, op := range ops {
		b.begin(op)
	}
}

// begin writes the number of an instruction and counts its fuel.
func (b *Body) begin(op byte) {
	b.code = append(b.code, op)
	switch op {
	case OpNop, OpBlock, OpLoop, OpEnd:
	case OpElse:
		a := &b.arms[len(b.arms)-1]
		a.first, b.ticks = b.ticks-a.before, a.before
	default:
		b.ticks++
	}
}

func (b *Body) index(op byte, index uint32) {
	b.begin(op)
	b.code = AppendU32(b.code, index)
}

// I32 pushes a constant.
func (b *Body) I32(v int32) {
	b.begin(OpI32Const)
	b.code = AppendS64(b.code, int64(v))
}

// I64 pushes a constant.
func (b *Body) I64(v int64) {
	b.begin(OpI64Const)
	b.code = AppendS64(b.code, v)
}

// F64 pushes a constant.
func (b *Body) F64(v float64) {
	b.begin(OpF64Const)
	b.code = binary.LittleEndian.AppendUint64(b.code, math.Float64bits(v))
}

// Get pushes a local, Set pops it, and Tee stores it without popping.
func (b *Body) Get(local uint32) { b.index(OpLocalGet, local) }

// Set pops a value into a local.
func (b *Body) Set(local uint32) { b.index(OpLocalSet, local) }

// Tee stores the value on top of the stack in a local.
func (b *Body) Tee(local uint32) { b.index(OpLocalTee, local) }

// Call calls a function by its index.
func (b *Body) Call(function int) { b.index(OpCall, uint32(function)) }

// Memory writes a load or store at an offset from the address on the stack. It assumes no
// alignment.
func (b *Body) Memory(op byte, offset uint32) {
	b.begin(op)
	b.code = AppendU32(append(b.code, 0), offset)
}

// Block begins a block, loop or if, by its instruction and the type of its result.
func (b *Body) Block(op byte, result ValueType) Label {
	b.begin(op)
	b.code = append(b.code, byte(result))
	b.depth++
	b.arms = append(b.arms, arms{before: b.ticks})
	return Label(b.depth)
}

// End ends the innermost block.
func (b *Body) End() {
	b.begin(OpEnd)
	b.depth--
	a := b.arms[len(b.arms)-1]
	b.arms = b.arms[:len(b.arms)-1]
	b.ticks = max(b.ticks, a.before+a.first)
}

// Br branches to a label, and BrIf does if the value on the stack is not 0.
func (b *Body) Br(to Label) { b.index(OpBr, uint32(b.depth-int(to))) }

// BrIf branches to a label if the value on the stack is not 0.
func (b *Body) BrIf(to Label) { b.index(OpBrIf, uint32(b.depth-int(to))) }

// Local returns a local that is not in use. Its value is undefined.
func (b *Body) Local(t ValueType) uint32 {
	if free := b.free[t]; len(free) > 0 {
		b.free[t] = free[:len(free)-1]
		return free[len(free)-1]
	}
	return b.Lasting(t)
}

// Lasting returns a local that had no other use, for a value that Early computes.
func (b *Body) Lasting(t ValueType) uint32 {
	b.locals = append(b.locals, t)
	return uint32(b.params + len(b.locals) - 1)
}

// Free returns a local for other uses.
func (b *Body) Free(t ValueType, local uint32) { b.free[t] = append(b.free[t], local) }

// Bytes returns the body for the code section.
func (b *Body) Bytes() []byte {
	out := AppendU32(nil, uint32(len(b.locals)))
	for _, t := range b.locals {
		out = append(out, 1, byte(t))
	}
	out = append(append(out, b.early...), b.code...)
	return append(out, OpEnd)
}
