package meter

// emitter writes the body of one function with its charges.
//
// A function with one region takes its fuel from the global once, where it
// begins. Any other keeps the fuel in a local while it runs, for a global is
// memory and a loop would wait for it; the global is up to date where others
// look at it: in calls, and when the function is left.
type emitter struct {
	out    []byte
	global uint32 // the fuel
	local  uint32 // the fuel while the function runs
	length uint32 // the length of bulk work
	// simple is whether the function has one region.
	simple bool
	// dirty is whether the local may be newer than the global.
	dirty bool
}

// isSimple is whether one charge at the entry is all that the function needs.
func (w *walk) isSimple() bool {
	if w.hasBulk {
		return false
	}
	for _, m := range w.marks[1:] {
		if m.kind == markLoop || m.kind == markRegion && m.weight > 0 {
			return false
		}
	}
	return true
}

// body copies the instructions from start to end, with what the marks insert.
func (e *emitter) body(module []byte, start, end int, marks []mark) {
	for _, m := range marks {
		if e.simple && m.kind != markEntry {
			continue
		}
		at := int(m.at)
		e.out = append(e.out, module[start:at]...)
		start = at
		if m.kind == markCall {
			start += int(m.weight)
			e.call(module[at:start])
		} else {
			e.insert(m)
		}
	}
	e.out = append(e.out, module[start:end]...)
}

func (e *emitter) insert(m mark) {
	switch m.kind {
	case markEntry:
		e.enter(m.weight)
		e.dirty = true
	case markLoop:
		e.subtract(m.weight)
		e.check()
		e.dirty = true
	case markRegion:
		if m.weight > 0 {
			e.subtract(m.weight)
		}
		e.dirty = true
	case markMeet:
		e.dirty = true
	case markExit:
		if e.dirty {
			e.check()
			e.flush()
		}
	case markBytes, markElements, markPages:
		e.bulk(m.kind)
		e.dirty = true
	}
}

// call hands the fuel to the callee and takes back what it left.
func (e *emitter) call(instruction []byte) {
	if e.dirty {
		e.flush()
	}
	e.out = append(e.out, instruction...)
	e.op(opGlobalGet, e.global)
	e.op(opLocalSet, e.local)
	e.dirty = false
}

func (e *emitter) flush() {
	e.op(opLocalGet, e.local)
	e.op(opGlobalSet, e.global)
}

// enter charges the first region. It compares before it subtracts, because what
// the host left in the global may be anything.
func (e *emitter) enter(weight uint32) {
	e.op(opGlobalGet, e.global)
	if !e.simple {
		e.op(opLocalTee, e.local)
	}
	e.i64(int64(weight))
	e.out = append(e.out, opI64LtS)
	e.trap()
	if e.simple {
		e.op(opGlobalGet, e.global)
	} else {
		e.op(opLocalGet, e.local)
	}
	e.i64(int64(weight))
	e.out = append(e.out, opI64Sub)
	if e.simple {
		e.op(opGlobalSet, e.global)
	} else {
		e.op(opLocalSet, e.local)
	}
}

// subtract charges a region. The local cannot wrap around: it is checked before
// it can lose more than the function has instructions.
func (e *emitter) subtract(weight uint32) {
	e.op(opLocalGet, e.local)
	e.i64(int64(weight))
	e.out = append(e.out, opI64Sub)
	e.op(opLocalSet, e.local)
}

// check ends the call if the fuel has run out.
func (e *emitter) check() {
	e.op(opLocalGet, e.local)
	e.i64(0)
	e.out = append(e.out, opI64LtS)
	e.trap()
}

// trap ends the call if there is a 1 on the stack, and leaves a sign of why.
func (e *emitter) trap() {
	e.out = append(e.out, opIf, 0x40)
	e.i64(-1)
	e.op(opGlobalSet, e.global)
	e.out = append(e.out, opUnreachable, opEnd)
}

// bulk charges work by its length, which is on top of the stack and stays there.
func (e *emitter) bulk(kind markKind) {
	e.op(opLocalTee, e.length)
	e.op(opLocalGet, e.local)
	e.op(opLocalGet, e.length)
	e.out = append(e.out, opI64ExtendU)
	switch kind {
	case markBytes:
		e.i64(bytesPerTick)
		e.out = append(e.out, opI64ShrU)
	case markPages:
		e.i64(ticksPerPage)
		e.out = append(e.out, opI64Shl)
		// More pages than there are addresses are refused at once, so they are
		// free: a guest that tries hears so, as it does without metering.
		e.i64(0)
		e.op(opLocalGet, e.length)
		e.out = append(e.out, opI32Const)
		e.out = appendS64(e.out, maxPages)
		e.out = append(e.out, opI32LeU, opSelect)
	}
	e.out = append(e.out, opI64Sub)
	e.op(opLocalSet, e.local)
	e.check()
}

const (
	bytesPerTick = 3     // as a shift: 8 bytes
	ticksPerPage = 13    // as a shift: 8,192 ticks for the 64 KiB of a page
	maxPages     = 65536 // of a 32-bit memory
)

func (e *emitter) op(op byte, index uint32) {
	e.out = append(e.out, op)
	e.out = appendU32(e.out, index)
}

func (e *emitter) i64(v int64) {
	e.out = append(e.out, opI64Const)
	e.out = appendS64(e.out, v)
}
