package meter

// emitter writes the body of one function with its charges.
//
// A function with one region reads the fuel from the global once, at its entry. Any other
// function holds the fuel in a local, because a global is memory and a loop would wait for
// it. The global is current whenever it can be observed: during calls, and when the
// function is left. The body is nested in blocks:
//
//	block $dry
//	  block $dryN ... block $dry1 block $dry0
//	    charge the entry, or branch to $dry0
//	    block $out (the results of the function)
//	      the body, with branches to $dry1, $dry2 ... where fuel is checked
//	    end
//	    check again, and write the fuel to the global
//	    return
//	  end $dry0, branch to $dry
//	  end $dry1, branch to $dry
//	  ...
//	end
//	set the global to -1
//	unreachable
//
// $out replaces the function's own label, so no branch is rewritten. The trap is separate
// because engines lay code out in order, and each check has its own label because wazero
// takes five instructions instead of two for a comparison with a shared label.
type emitter struct {
	out    []byte
	global uint32 // the fuel
	local  uint32 // the fuel during the function
	length uint32 // the length of a bulk instruction
	// simple reports whether the function has one region.
	simple bool
	// dirty reports whether the local may be newer than the global.
	dirty bool
	// checks is the number of checks written, and thus of labels used.
	checks uint32
	// room is the maximum length of out.
	room int
}

// isSimple reports whether one charge at the entry suffices for the function.
func (w *walk) isSimple() bool {
	checks, atExit := countChecks(w.marks)
	return checks == 1 && !atExit
}

// simpleBody writes a function that is charged once.
func (e *emitter) simpleBody(instructions []byte, weight uint32) {
	e.op(opGlobalGet, e.global)
	e.i64(int64(weight))
	e.out = append(e.out, opI64LtS, opIf, noResult)
	e.trap()
	e.out = append(e.out, opEnd)
	e.op(opGlobalGet, e.global)
	e.i64(int64(weight))
	e.out = append(e.out, opI64Sub)
	e.op(opGlobalSet, e.global)
	e.out = append(e.out, instructions...)
}

// body writes any other function: the module's bytes from start to end with the insertions
// of the marks. results is the type of a block with the function's results.
func (e *emitter) body(module []byte, start, end int, marks []mark, results int64) {
	checks, atExit := countChecks(marks)
	for range checks + 1 {
		e.out = append(e.out, opBlock, noResult)
	}
	e.checks = 0
	e.enter(marks[0].weight)
	e.out = append(e.out, opBlock)
	e.out = appendS64(e.out, results)
	e.dirty = true
	for _, m := range marks[1:] {
		if len(e.out) > e.room {
			return // already too large; the caller reports it
		}
		at := int(m.at)
		e.out = append(e.out, module[start:at]...)
		start = at + e.insert(m, module[at:])
	}
	e.out = append(e.out, module[start:end]...) // includes the end of $out
	if atExit {
		e.check(0)
	}
	e.flush()
	e.out = append(e.out, opReturn)
	for i := range checks {
		e.out = append(e.out, opEnd)
		e.op(opBr, checks-1-i)
	}
	e.out = append(e.out, opEnd)
	e.trap()
	e.out = append(e.out, opEnd)
}

// countChecks returns how often body checks the fuel: at the entry, at marks that require
// it, and at the exit if charges remain unchecked.
func countChecks(marks []mark) (checks uint32, atExit bool) {
	checks = 1
	for _, m := range marks {
		switch m.kind {
		case markLoop, markHostCall, markBytes, markElements, markPages:
			checks++
		case markRegion:
			atExit = atExit || m.weight > 0
		}
	}
	if atExit {
		checks++
	}
	return checks, atExit
}

// insert writes the code for a mark, and returns how many of the following bytes it
// replaces.
func (e *emitter) insert(m mark, behind []byte) (done int) {
	switch m.kind {
	case markLoop:
		e.subtract(m.weight)
		e.check(m.depth)
		e.dirty = true
	case markRegion:
		if m.weight > 0 {
			e.subtract(m.weight)
		}
		e.dirty = true
	case markMeet:
		e.dirty = true
	case markCall:
		e.call(behind[:m.weight])
		return int(m.weight)
	case markHostCall:
		e.call(behind[:m.weight])
		e.check(m.depth)
		return int(m.weight)
	case markReturn:
		if e.dirty {
			e.op(opBr, m.depth-1) // to $out
			return 1
		}
	case markBytes, markElements, markPages:
		e.bulk(m.kind)
		e.check(m.depth)
		e.dirty = true
	}
	return 0
}

// call stores the fuel for the callee and loads what it leaves.
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

// enter charges the first region. It compares before it subtracts, because the host may
// have stored any value in the global.
func (e *emitter) enter(weight uint32) {
	e.op(opGlobalGet, e.global)
	e.op(opLocalTee, e.local)
	e.i64(int64(weight))
	e.ifLess(0)
	e.subtract(weight)
}

// subtract charges a region. The local cannot wrap around: it is checked before it can lose
// more than the number of instructions in the function.
func (e *emitter) subtract(weight uint32) {
	e.op(opLocalGet, e.local)
	e.i64(int64(weight))
	e.out = append(e.out, opI64Sub)
	e.op(opLocalSet, e.local)
}

// check branches to its own label if the fuel is used up. depth is the number of labels up
// to $out.
func (e *emitter) check(depth uint32) {
	e.op(opLocalGet, e.local)
	e.i64(0)
	e.ifLess(depth)
}

// ifLess branches if the first of two numbers on the stack is smaller.
func (e *emitter) ifLess(depth uint32) {
	e.out = append(e.out, opI64LtS)
	e.op(opBrIf, depth+e.checks)
	e.checks++
}

// trap ends the call and marks the fuel as used up.
func (e *emitter) trap() {
	e.i64(-1)
	e.op(opGlobalSet, e.global)
	e.out = append(e.out, opUnreachable)
}

// bulk charges work by its length, which is on top of the stack and remains there.
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
		// A request for more pages than the address space holds fails at once, so it is
		// free: the guest sees the failure, as without metering.
		e.i64(0)
		e.op(opLocalGet, e.length)
		e.out = append(e.out, opI32Const)
		e.out = appendS64(e.out, maxPages)
		e.out = append(e.out, opI32LeU, opSelect)
	}
	e.out = append(e.out, opI64Sub)
	e.op(opLocalSet, e.local)
}

const (
	bytesPerTick = 3     // as a shift: 8 bytes
	ticksPerPage = 13    // as a shift: 8,192 ticks for the 64 KiB of a page
	maxPages     = 65536 // of a 32-bit memory
	noResult     = 0x40
)

func (e *emitter) op(op byte, index uint32) {
	e.out = append(e.out, op)
	e.out = appendU32(e.out, index)
}

func (e *emitter) i64(v int64) {
	e.out = append(e.out, opI64Const)
	e.out = appendS64(e.out, v)
}
