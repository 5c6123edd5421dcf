package meter

import "github.com/cede-scheduler/cede/plugins/wasm/encoding"

// constant skips a constant expression: one constant and an end. Extended constant
// expressions are not supported.
func (c *contents) constant(r *reader) {
	at := r.pos
	switch op := r.byte(); op {
	case encoding.OpI32Const:
		r.signed(32)
	case encoding.OpI64Const:
		r.signed(64)
	case encoding.OpF32Const:
		r.skip(4)
	case encoding.OpF64Const:
		r.skip(8)
	case encoding.OpGlobalGet:
		// The module must not use the index of the fuel global, which does not exist yet.
		if g := r.u32(); !r.failed() && int64(g) >= int64(c.importedGlobals) {
			r.malformed(at, "a constant uses global %d, %d are imported", g, c.importedGlobals)
		}
	case encoding.OpRefNull:
		r.refType()
	case encoding.OpRefFunc:
		c.functionIndex(r)
	case encoding.OpVector:
		if sub := r.vectorOp(); sub != vecConst {
			r.malformed(at, "SIMD instruction %#x is not constant", sub)
		}
		r.skip(16)
	default:
		r.malformed(at, "instruction %#x is not constant", op)
	}
	at = r.pos
	if end := r.byte(); end != encoding.OpEnd && !r.failed() {
		r.fail(ErrUnsupported, at, "build without extended constants", "a constant of more than one instruction (extended constants)")
	}
}

// readElements skips the segments of tables.
func (c *contents) readElements(r *reader) {
	n := r.limited(2, maxSegments, "element segments")
	for range n {
		at := r.pos
		flags := r.u32()
		if flags > 7 {
			r.malformed(at, "an element segment has unknown flags %#x", flags)
		}
		if flags&1 == 0 { // active
			if flags&2 != 0 {
				r.u32() // the table
			}
			c.constant(r) // its offset
		}
		asExpressions := flags&4 != 0
		if flags&3 != 0 {
			r.elementKind(asExpressions)
		}
		if asExpressions {
			c.elementExpressions(r)
		} else {
			c.elementFunctions(r)
		}
		if r.failed() {
			return
		}
	}
}

func (r *reader) elementKind(asExpressions bool) {
	if asExpressions {
		r.refType()
		return
	}
	at := r.pos
	if k := r.byte(); k != 0 {
		r.malformed(at, "unknown element kind %#x", k)
	}
}

func (c *contents) elementFunctions(r *reader) {
	n := r.count(1, "elements")
	for range n {
		if r.failed() {
			return
		}
		c.functionIndex(r)
	}
}

// functionIndex reads the index of a function, which must not be one that metering adds.
func (c *contents) functionIndex(r *reader) {
	at := r.pos
	if f := r.u32(); !r.failed() && int64(f) >= int64(len(c.functions)) {
		r.malformed(at, "function %d does not exist, there are %d", f, len(c.functions))
	}
}

func (c *contents) elementExpressions(r *reader) {
	n := r.count(3, "elements")
	for range n {
		if r.failed() {
			return
		}
		c.constant(r)
	}
}

func (c *contents) readDataCount(r *reader) { r.u32() }

func (c *contents) readCodeCount(r *reader) {
	c.codes = r.count(3, "function bodies")
	r.pos = r.end
}

// readData skips the segments of memory.
func (c *contents) readData(r *reader) {
	n := r.limited(2, maxSegments, "data segments")
	for range n {
		at := r.pos
		flags := r.u32()
		switch {
		case flags > 2:
			r.malformed(at, "a data segment has unknown flags %#x", flags)
		case flags == 2:
			if m := r.u32(); m != 0 {
				r.fail(ErrUnsupported, at, "build for one memory", "a data segment uses memory %d (multi-memory)", m)
			}
		}
		if flags != 1 {
			c.constant(r)
		}
		r.skip(r.count(1, "bytes of data"))
		if r.failed() {
			return
		}
	}
}
