package meter

// operand skips the operands of an opcode. Engines read the same bytes three times, to
// validate, compile and interpret them. Ambiguous encodings are rejected, because an
// instruction could otherwise hide from its charge.
func (w *walk) operand(at int, op byte, kind operand) {
	r := &w.r
	switch kind {
	case none:
	case index:
		w.index = r.u32()
	case localIndex:
		if l := r.u32(); int64(l) >= int64(w.locals) {
			r.malformed(at, "local %d does not exist, there are %d", l, w.locals)
		}
	case global:
		if g := r.u32(); int64(g) >= int64(w.c.globals()) {
			r.malformed(at, "global %d does not exist, there are %d", g, w.c.globals())
		}
	case typeAndTable:
		// Types that metering adds must not be used by the module.
		if t := r.u32(); int64(t) >= int64(len(w.c.types)) {
			r.malformed(at, "called type %d does not exist, there are %d", t, len(w.c.types))
		}
		r.u32()
	case memArg:
		r.memArg()
	case memArgLane:
		r.memArg()
		r.byte()
	case memory:
		r.zero("memory.size or memory.grow")
	case i32Value:
		r.signed(32)
	case i64Value:
		r.signed(64)
	case bytes4:
		r.skip(4)
	case bytes8:
		r.skip(8)
	case bytes16:
		r.skip(16)
	case lane:
		r.byte()
	case selectType:
		r.selectType()
	case reference:
		r.refType()
	default:
		r.unknownInstruction(at, op)
	}
}

func (r *reader) unknownInstruction(at int, op byte) {
	if p, ok := beyond[op]; ok {
		r.fail(ErrUnsupported, at, p.hint, "%s (%s)", p.name, p.feature)
		return
	}
	r.malformed(at, "unknown instruction %#x", op)
}

// memArg reads alignment and offset of a load or store.
func (r *reader) memArg() {
	at := r.pos
	align := r.u32()
	switch {
	case align >= 1<<6 && align < 1<<7:
		r.fail(ErrUnsupported, at, "build for one memory", "a load or store that names its memory (multi-memory)")
	case align >= 32:
		r.malformed(at, "a load or store is aligned to 2^%d bytes", align)
	}
	at = r.pos
	r.u32()
	if r.err != nil && r.err.Offset == at {
		r.err.Hint = "build for wasm32"
	}
}

// selectType reads the types of a typed select.
func (r *reader) selectType() {
	at := r.pos
	// Only the shortest encoding is accepted: an engine that reads the number as one byte
	// would read everything after it differently.
	if n := r.byte(); n != 1 && !r.failed() {
		r.malformed(at, "a select has %d types", n)
	}
	r.valueType()
}

// miscOp reads the instruction after encoding.OpMisc and its operands. For the instructions in bulk,
// the length of the work is on the stack.
func (w *walk) miscOp(at int) (sub uint32) {
	r := &w.r
	sub = r.u32()
	switch {
	case r.failed():
	case sub < miscMemoryInit: // saturating conversions
	case sub == miscMemoryInit:
		r.u32()
		r.zero("memory.init")
	case sub == miscMemoryCopy:
		r.zero("memory.copy")
		r.zero("memory.copy")
	case sub == miscMemoryFill:
		r.zero("memory.fill")
	case sub == miscTableInit, sub == miscTableCopy:
		r.u32()
		r.u32()
	case sub == miscDataDrop, sub == miscElemDrop, sub >= miscTableGrow && sub <= miscTableFill:
		r.u32()
	case sub >= 19 && sub <= 22:
		r.fail(ErrUnsupported, at, "build without wide arithmetic", "instruction 0xfc %d (wide arithmetic)", sub)
	default:
		r.malformed(at, "unknown instruction 0xfc %d", sub)
	}
	return sub
}

// vectorOp reads the SIMD instruction after encoding.OpVector. Engines read it as one byte and treat
// a second byte of 1 as a nop, so only the shortest encoding is unambiguous.
func (r *reader) vectorOp() uint32 {
	at := r.pos
	sub := r.u32()
	switch {
	case r.failed():
		return 0
	case sub >= 0x100 && sub <= 0x12f:
		r.fail(ErrUnsupported, at, "build without -mrelaxed-simd", "instruction 0xfd %#x (relaxed SIMD)", sub)
		return 0
	case sub > 0xff || vectorOperands[sub] == unknown:
		r.malformed(at, "unknown instruction 0xfd %#x", sub)
		return 0
	case (sub < 0x80 && r.pos != at+1) || (sub >= 0x80 && r.pos != at+2):
		r.fail(ErrUnsupported, at, "use the shortest encoding of numbers",
			"instruction 0xfd %#x is not in its shortest encoding, which engines read differently", sub)
		return 0
	}
	return sub
}

// blockType skips the type of a block.
func (w *walk) blockType() {
	r := &w.r
	at := r.pos
	if r.rest() == 0 {
		r.byte() // reports the unexpected end
		return
	}
	if b := r.buf[at]; b >= 0x40 && b < 0x80 { // negative, in one byte: no type, or a value type
		r.pos++
		if b != 0x40 {
			r.checkValueType(at, ValueType(b))
		}
		return
	}
	t := r.signed(33)
	if !r.failed() && (t < 0 || t >= int64(len(w.c.types))) {
		r.malformed(at, "block type %d does not exist, there are %d", t, len(w.c.types))
	}
}
