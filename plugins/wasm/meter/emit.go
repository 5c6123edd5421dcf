package meter

import "github.com/cede-scheduler/cede/plugins/wasm/encoding"

// emitter writes the body of one function with its charges.
//
// A function with one region charges the global once, at its entry. Any other function
// holds the fuel in a local, because a global is memory and a loop would wait for it. The
// global is current whenever it can be observed: during calls, and when the function is
// left. The body is nested in a block:
//
//	charge the entry, and the stack if the function calls others
//	block $out (the results of the function)
//	  the body, with charges and checks
//	end
//	return the charge for the stack
//	check again, and write the fuel to the global
//
// $out replaces the function's own label, so no branch is rewritten. A check calls $refuel
// if the fuel is negative, and continues with the fuel that it returns. The call is on its
// own path, so engines hold values in registers across the check if it passes.
type emitter struct {
	out    []byte
	copies []copied // the parts of out that are copies, with offsets in the module and in out
	global uint32   // the fuel
	local  uint32   // the fuel during the function
	length uint32   // the length of a bulk instruction
	// simple reports whether the function has one region.
	simple bool
	// dirty reports whether the local may be newer than the global.
	dirty bool
	// refuel is the index of the function that a check calls.
	refuel uint32
	// stack is the charge for the function's stack while it runs; 0 if it calls none.
	stack uint32
	// room is the maximum length of out.
	room int
}

// isSimple reports whether one charge at the entry suffices for the function.
func (w *walk) isSimple() bool {
	if w.calls {
		return false
	}
	for _, m := range w.marks[1:] {
		switch m.kind {
		case markLoop, markHostCall, markBytes, markElements, markPages:
			return false
		case markRegion:
			if m.weight > 0 {
				return false
			}
		}
	}
	return true
}

// copy appends the module's bytes from start to end.
func (e *emitter) copy(module []byte, start, end int) {
	if start < end {
		e.copies = append(e.copies, copied{original: uint32(start), metered: uint32(len(e.out)), length: uint32(end - start)})
	}
	e.out = append(e.out, module[start:end]...)
}

// simpleBody writes a function that is charged once: the module's bytes from start to end.
func (e *emitter) simpleBody(module []byte, start, end int, weight uint32) {
	e.op(encoding.OpGlobalGet, e.global)
	e.i64(int64(weight))
	e.out = append(e.out, encoding.OpI64Sub)
	e.op(encoding.OpGlobalSet, e.global)
	e.op(encoding.OpGlobalGet, e.global)
	e.i64(0)
	e.out = append(e.out, encoding.OpI64GeS, encoding.OpIf, noResult, encoding.OpElse)
	e.op(encoding.OpGlobalGet, e.global)
	e.op(encoding.OpCall, e.refuel)
	e.op(encoding.OpGlobalSet, e.global)
	e.out = append(e.out, encoding.OpEnd)
	e.copy(module, start, end)
}

// body writes any other function: the module's bytes from start to end with the insertions
// of the marks. results is the type of a block with the function's results.
func (e *emitter) body(module []byte, start, end int, marks []mark, results int64) {
	e.enter(marks)
	e.out = append(e.out, encoding.OpBlock)
	e.out = encoding.AppendS64(e.out, results)
	e.dirty = true
	for _, m := range marks[1:] {
		if len(e.out) > e.room {
			return // already too large; the caller reports it
		}
		at := int(m.at)
		e.copy(module, start, at)
		start = at + e.insert(m, module, at)
	}
	e.copy(module, start, end) // includes the end of $out
	if chargesRegions(marks) {
		e.check()
	}
	e.leave()
	e.out = append(e.out, encoding.OpEnd)
}

// chargesRegions reports whether a function can end with charges that were not checked.
func chargesRegions(marks []mark) bool {
	for _, m := range marks {
		if m.kind == markRegion && m.weight > 0 {
			return true
		}
	}
	return false
}

// insert writes the code for a mark at an offset in the module, and returns how many of the
// bytes from there it replaces.
func (e *emitter) insert(m mark, module []byte, at int) (done int) {
	switch m.kind {
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
	case markCall:
		e.call(module, at, at+int(m.weight))
		return int(m.weight)
	case markHostCall:
		e.call(module, at, at+int(m.weight))
		e.check()
		return int(m.weight)
	case markReturn:
		if e.dirty || e.stack > 0 {
			e.op(encoding.OpBr, m.depth-1) // to $out
			return 1
		}
	case markBytes, markElements, markPages:
		e.bulk(m.kind)
		e.check()
		e.dirty = true
	}
	return 0
}

// call stores the fuel for the callee and loads what it leaves. The instruction is the
// module's bytes from start to end.
func (e *emitter) call(module []byte, start, end int) {
	if e.dirty {
		e.flush()
	}
	e.copy(module, start, end)
	e.op(encoding.OpGlobalGet, e.global)
	e.op(encoding.OpLocalSet, e.local)
	e.dirty = false
}

func (e *emitter) flush() {
	e.op(encoding.OpLocalGet, e.local)
	e.op(encoding.OpGlobalSet, e.global)
}

// leave returns the charge for the stack and stores the fuel.
func (e *emitter) leave() {
	e.op(encoding.OpLocalGet, e.local)
	if e.stack > 0 {
		e.i64(int64(e.stack))
		e.out = append(e.out, encoding.OpI64Add)
	}
	e.op(encoding.OpGlobalSet, e.global)
}

// enter charges the first region and the stack. A loop that follows before anything else
// checks both.
func (e *emitter) enter(marks []mark) {
	e.op(encoding.OpGlobalGet, e.global)
	e.i64(int64(marks[0].weight + e.stack))
	e.out = append(e.out, encoding.OpI64Sub)
	e.op(encoding.OpLocalSet, e.local)
	if len(marks) < 2 || marks[1].kind != markLoop {
		e.check()
	}
}

// subtract charges a region. The local cannot wrap around: it is checked before it can lose
// more than the number of instructions in the function.
func (e *emitter) subtract(weight uint32) {
	e.op(encoding.OpLocalGet, e.local)
	e.i64(int64(weight))
	e.out = append(e.out, encoding.OpI64Sub)
	e.op(encoding.OpLocalSet, e.local)
}

// check requests more fuel if it is used up. The call ends if there is none. The path that
// does not call is the first one, because wazero assigns registers by the first path.
func (e *emitter) check() {
	e.op(encoding.OpLocalGet, e.local)
	e.i64(0)
	e.out = append(e.out, encoding.OpI64GeS, encoding.OpIf, noResult, encoding.OpElse)
	e.op(encoding.OpLocalGet, e.local)
	e.op(encoding.OpCall, e.refuel)
	e.op(encoding.OpLocalSet, e.local)
	e.out = append(e.out, encoding.OpEnd)
}

// bulk charges work by its length, which is on top of the stack and remains there.
func (e *emitter) bulk(kind markKind) {
	e.op(encoding.OpLocalTee, e.length)
	e.op(encoding.OpLocalGet, e.local)
	e.op(encoding.OpLocalGet, e.length)
	e.out = append(e.out, encoding.OpI64ExtendU)
	switch kind {
	case markBytes:
		e.i64(bytesPerTick)
		e.out = append(e.out, encoding.OpI64ShrU)
	case markPages:
		e.i64(ticksPerPage)
		e.out = append(e.out, encoding.OpI64Shl)
		// A request for more pages than the address space holds fails at once, so it is
		// free: the guest sees the failure, as without metering.
		e.i64(0)
		e.op(encoding.OpLocalGet, e.length)
		e.out = append(e.out, encoding.OpI32Const)
		e.out = encoding.AppendS64(e.out, maxPages)
		e.out = append(e.out, encoding.OpI32LeU, encoding.OpSelect)
	}
	e.out = append(e.out, encoding.OpI64Sub)
	e.op(encoding.OpLocalSet, e.local)
}

const (
	bytesPerTick = 3     // as a shift: 8 bytes
	ticksPerPage = 13    // as a shift: 8,192 ticks for the 64 KiB of a page
	maxPages     = 65536 // of a 32-bit memory
	noResult     = 0x40
)

func (e *emitter) op(op byte, index uint32) {
	e.out = append(e.out, op)
	e.out = encoding.AppendU32(e.out, index)
}

func (e *emitter) i64(v int64) {
	e.out = append(e.out, encoding.OpI64Const)
	e.out = encoding.AppendS64(e.out, v)
}
