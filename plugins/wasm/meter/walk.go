package meter

import "github.com/cede-scheduler/cede/plugins/wasm/encoding"

// mark is a position in a function at which code is inserted.
type mark struct {
	at   uint32 // offset in the module, before the byte there
	kind markKind
	// depth is the number of open blocks, including the function.
	depth uint32
	// weight is the charge of a region in ticks; for a call, its length in bytes.
	weight uint32
}

type markKind byte

const (
	// A region starts: entry, loop and region are charged weight. Entry and loop also check
	// the fuel.
	markEntry markKind = iota
	markLoop
	markRegion
	// Paths meet that were charged before.
	markMeet
	markCall
	// A call that may reach the host, which can charge any amount.
	markHostCall
	markReturn
	// Bulk work with its length on top of the stack, in bytes, elements or pages.
	markBytes
	markElements
	markPages
	// A region that was merged into another.
	markDropped
)

// frame is an open block, loop or if; the first one is the function.
type frame struct {
	op   byte
	dead bool // unreachable
	// small reports whether an if contains no blocks, calls, bulk work or else.
	small bool
	// region is the mark charged for the code before the block.
	region int
	// arm is the mark of the first arm of an if.
	arm int
	// outermost is the outermost frame that a branch inside this one targets.
	outermost int
}

// smallIf is the maximum number of instructions of an if without else that is charged with
// the surrounding region: guards are frequent, and their bodies are jumps.
const smallIf = 8

// maxNesting is the maximum nesting depth of blocks.
const maxNesting = 1 << 16

// stackPerTick is the number of bytes of stack for which a function is charged one tick
// while it runs.
const stackPerTick = 64

// frameSize returns an upper bound of the stack of the function in an engine, in bytes. An
// engine can spill the result of every instruction, and at each label a copy of each local.
func (w *walk) frameSize() int64 {
	const slot, linkage = 16, 64
	return linkage + slot*(int64(w.instructions)+int64(w.labels)*int64(w.locals+2))
}

// walk iterates over the instructions of a function and determines where to charge fuel. It
// is reused for the next function.
type walk struct {
	c      *contents
	r      reader
	locals int // parameters included
	marks  []mark
	frames []frame
	// current is the mark of the region to which instructions are charged; unreachable code
	// has none.
	current int
	dead    bool
	hasBulk bool
	calls   bool // the function calls others
	// instructions, labels and targets of branch tables are the numbers of those in the
	// function.
	instructions, labels, targets int
	// index is the operand of the last instruction with an index.
	index uint32
}

// body determines the marks of a function body after its locals were read.
func (w *walk) body(declared int) {
	w.marks, w.frames, w.hasBulk, w.calls, w.dead = w.marks[:0], w.frames[:0], false, false, false
	w.instructions, w.labels, w.targets = 0, 1, 0
	w.frames = append(w.frames, frame{op: encoding.OpBlock})
	w.begin(markEntry)
	// A call costs something even if the function is empty, and locals are set to zero.
	w.marks[0].weight = uint32(1 + declared)
	for len(w.frames) > 0 && !w.r.failed() {
		w.instruction()
	}
	w.r.finish("function")
}

// begin starts a region at the current position.
func (w *walk) begin(kind markKind) {
	w.current = len(w.marks)
	w.marks = append(w.marks, mark{at: uint32(w.r.pos), kind: kind, depth: uint32(len(w.frames))})
}

// charge adds one instruction to the region.
func (w *walk) charge() {
	if !w.dead {
		w.marks[w.current].weight++
	}
}

// note adds a mark in reachable code.
func (w *walk) note(kind markKind, at int) {
	if !w.dead {
		w.marks = append(w.marks, mark{at: uint32(at), kind: kind, depth: uint32(len(w.frames))})
	}
}

// busy records that the enclosing block does more than a guard.
func (w *walk) busy() { w.frames[len(w.frames)-1].small = false }

func (w *walk) instruction() {
	at := w.r.pos
	op := w.r.byte()
	kind := operands[op]
	w.instructions++
	switch {
	case op == encoding.OpNop:
	case kind == control:
		w.control(at, op)
	case kind == prefixed:
		w.charge()
		w.prefixed(at, op)
	default:
		w.charge()
		w.operand(at, op, kind)
		w.plain(at, op)
	}
}

// plain adds the marks of an instruction that is not a control instruction.
func (w *walk) plain(at int, op byte) {
	switch op {
	case encoding.OpCall:
		w.call(markCall, at)
	case encoding.OpCallIndirect:
		w.call(markHostCall, at)
	case encoding.OpMemoryGrow:
		w.bulk(markPages, at)
	case encoding.OpReturn:
		w.note(markReturn, at)
		w.branchTo(0)
		w.dead = true
	case encoding.OpUnreachable:
		w.dead = true
	case encoding.OpRefFunc:
		// Engines allocate a reference each time, and retain it with the instance.
		w.r.fail(ErrUnsupported, at, "take references of functions from a table (table.get)", "ref.func in a function")
	}
}

func (w *walk) call(kind markKind, at int) {
	w.busy()
	if kind == markCall && int64(w.index) >= int64(len(w.c.functions)) {
		// Functions that metering adds must not be used by the module.
		w.r.malformed(at, "called function %d does not exist, there are %d", w.index, len(w.c.functions))
	}
	if kind == markCall && int64(w.index) < int64(w.c.importedFunctions) {
		kind = markHostCall
	}
	w.note(kind, at)
	if !w.dead {
		w.calls = true
		w.marks[len(w.marks)-1].weight = uint32(w.r.pos - at)
	}
}

func (w *walk) bulk(kind markKind, at int) {
	w.busy()
	w.note(kind, at)
	w.hasBulk = w.hasBulk || !w.dead
}

func (w *walk) prefixed(at int, op byte) {
	if op == encoding.OpVector {
		if sub := w.r.vectorOp(); !w.r.failed() {
			w.operand(at, op, vectorOperands[sub])
		}
		return
	}
	switch w.miscOp(at) {
	case miscMemoryInit, miscMemoryCopy, miscMemoryFill:
		w.bulk(markBytes, at)
	case miscTableInit, miscTableCopy, miscTableGrow, miscTableFill:
		w.bulk(markElements, at)
	}
}

// control reads an instruction that opens or closes a block, or branches.
func (w *walk) control(at int, op byte) {
	switch op {
	case encoding.OpBlock, encoding.OpLoop, encoding.OpIf:
		w.open(at, op)
	case encoding.OpElse:
		w.orElse(at)
	case encoding.OpEnd:
		w.close()
	case encoding.OpBr, encoding.OpBrIf:
		w.charge()
		w.branch(at, w.r.u32())
		w.dead = w.dead || op == encoding.OpBr
	case encoding.OpBrTable:
		w.charge()
		w.branchTable()
		w.dead = true
	}
}

func (w *walk) open(at int, op byte) {
	if len(w.frames) >= maxNesting {
		w.r.fail(ErrLimit, at, "split the function", "blocks are nested deeper than %d", maxNesting)
		return
	}
	w.busy()
	w.labels++
	if op == encoding.OpIf {
		w.charge()
	}
	w.blockType()
	w.frames = append(w.frames, frame{
		op: op, dead: w.dead, small: op == encoding.OpIf,
		region: w.current, arm: len(w.marks), outermost: len(w.frames),
	})
	switch {
	case w.dead:
	case op == encoding.OpLoop:
		w.begin(markLoop)
	case op == encoding.OpIf:
		w.begin(markRegion)
	}
}

func (w *walk) orElse(at int) {
	f := &w.frames[len(w.frames)-1]
	if f.op != encoding.OpIf {
		w.r.malformed(at, "else without if")
		return
	}
	f.op, f.small = encoding.OpElse, false
	if !f.dead {
		w.dead = false
		w.begin(markRegion)
	}
}

// close ends a block. Code after it is charged with the region before the block if it runs
// exactly as often, otherwise with its own region.
func (w *walk) close() {
	last := len(w.frames) - 1
	f := w.frames[last]
	if last == 0 {
		w.frames = w.frames[:0]
		return
	}
	w.frames = w.frames[:last]
	parent := &w.frames[last-1]
	parent.outermost = min(parent.outermost, f.outermost)
	if f.dead {
		return
	}
	w.dead = false
	switch {
	case f.small && w.marks[f.arm].weight <= smallIf:
		w.marks[f.region].weight += w.marks[f.arm].weight
		w.marks[f.arm].kind = markDropped
		w.current = f.region
	case f.outermost < last:
		w.begin(markRegion)
	default:
		w.current = f.region
		w.note(markMeet, w.r.pos)
	}
}

// branch records a branch to the given label.
func (w *walk) branch(at int, label uint32) {
	target := len(w.frames) - 1 - int(label)
	if w.r.failed() {
		return
	}
	if target < 0 {
		w.r.malformed(at, "label %d of a branch does not exist, there are %d", label, len(w.frames))
		return
	}
	w.branchTo(target)
}

func (w *walk) branchTo(target int) {
	if !w.dead {
		f := &w.frames[len(w.frames)-1]
		f.outermost = min(f.outermost, target)
	}
}

func (w *walk) branchTable() {
	at := w.r.pos
	n := w.r.count(1, "branch targets")
	if w.targets += n; w.targets > w.c.options.MaxTargets {
		w.r.fail(ErrLimit, at, "split the function", "branch tables have more than %d targets", w.c.options.MaxTargets)
		return
	}
	outermost := len(w.frames) - 1
	for range n + 1 {
		labelAt := w.r.pos
		label := w.r.u32()
		if w.r.failed() {
			return
		}
		if int64(label) >= int64(len(w.frames)) {
			w.r.malformed(labelAt, "label %d of a branch does not exist, there are %d", label, len(w.frames))
			return
		}
		outermost = min(outermost, len(w.frames)-1-int(label))
	}
	w.branchTo(outermost)
}
