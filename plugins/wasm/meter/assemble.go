package meter

import (
	"slices"

	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// assemble returns the metered module.
func assemble(c *contents) ([]byte, *Error) {
	c.lines = c.readLines()
	code, added, err := c.metered()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(c.module)+len(code)+64)
	out = append(out, header...)
	for _, s := range c.withFuel() {
		switch s.id {
		case secType:
			out = encoding.AppendSection(out, s.id, c.typeSection(s, added))
		case secFunction:
			out = encoding.AppendSection(out, s.id, c.functionSection(s))
		case secTable:
			out = encoding.AppendSection(out, s.id, c.tableSection())
		case secGlobal:
			out = encoding.AppendSection(out, s.id, c.globalSection(s))
		case secExport:
			out = encoding.AppendSection(out, s.id, c.exportSection(s))
		case secStart: // is exported instead
		case secCode:
			out = encoding.AppendSection(out, s.id, code)
		default:
			out = encoding.AppendSection(out, s.id, c.module[s.start:s.end])
		}
	}
	if names := c.nameSection(); names != nil {
		out = encoding.AppendSection(out, secCustom, names)
	}
	if c.lines != nil {
		out = appendOffsetSections(out)
	}
	return out, nil
}

// withFuel returns the sections plus the ones for the fuel global and its export, which are
// empty if the module has none.
func (c *contents) withFuel() []section {
	sections := slices.Clone(c.sections)
	for _, id := range []byte{secGlobal, secExport} {
		i := 0
		for i < len(sections) && sectionRank[sections[i].id] < sectionRank[id] {
			i++
		}
		if i == len(sections) || sections[i].id != id {
			sections = slices.Insert(sections, i, section{id: id})
		}
	}
	return sections
}

// elements returns the length and the content of a vector section, or none if the section
// is missing.
func (c *contents) elements(s section) (n uint32, rest []byte) {
	if s.start == s.end {
		return 0, nil
	}
	r := c.reader(s)
	n = r.u32()
	return n, c.module[r.pos:s.end]
}

// typeSection appends the types of the added functions and of blocks, so that existing
// indexes remain valid.
func (c *contents) typeSection(s section, blocks [][]ValueType) []byte {
	n, rest := c.elements(s)
	var added []Signature
	if c.codes > 0 {
		added = append(added, refuelSignature, Signature{})
	}
	for _, results := range blocks {
		added = append(added, Signature{Results: results})
	}
	b := encoding.AppendU32(nil, n+uint32(len(added)))
	b = append(b, rest...)
	for _, t := range added {
		b = append(b, 0x60)
		for _, list := range [][]ValueType{t.Params, t.Results} {
			b = encoding.AppendU32(b, uint32(len(list)))
			b = append(b, typeBytes(list)...)
		}
	}
	return b
}

// refuelSignature is the type of $refuel, which receives the negative fuel of its caller and
// returns the fuel to continue with.
var refuelSignature = Signature{Params: []ValueType{I64}, Results: []ValueType{I64}}

// addedFunctions is the number of functions that metering adds: $refuel and $yield. They
// follow all others, so that existing indexes remain valid.
const addedFunctions = 2

// functionSection appends the types of the added functions.
func (c *contents) functionSection(s section) []byte {
	n, rest := c.elements(s)
	if c.codes == 0 {
		return c.module[s.start:s.end]
	}
	b := encoding.AppendU32(nil, n+addedFunctions)
	b = append(b, rest...)
	b = encoding.AppendU32(b, uint32(len(c.types)))
	return encoding.AppendU32(b, uint32(len(c.types))+1)
}

// refuelBody returns the body of $refuel: it stores the fuel, calls $yield, where the host
// can store more, and traps if the fuel is still negative.
func (c *contents) refuelBody() []byte {
	e := emitter{global: uint32(c.globals())}
	e.out = append(e.out, 0) // no locals
	e.op(encoding.OpLocalGet, 0)
	e.op(encoding.OpGlobalSet, e.global)
	e.op(encoding.OpCall, uint32(c.yield()))
	e.op(encoding.OpGlobalGet, e.global)
	e.i64(0)
	e.out = append(e.out, encoding.OpI64LtS, encoding.OpIf, noResult)
	e.i64(-1)
	e.op(encoding.OpGlobalSet, e.global)
	e.out = append(e.out, encoding.OpUnreachable, encoding.OpEnd)
	e.op(encoding.OpGlobalGet, e.global)
	return append(e.out, encoding.OpEnd)
}

// yieldBody is the body of $yield, which does nothing. Hosts observe its calls.
var yieldBody = []byte{0, encoding.OpEnd}

// yield returns the index of $yield.
func (c *contents) yield() int { return len(c.functions) + 1 }

// tableSection rewrites the tables, because they receive a maximum.
func (c *contents) tableSection() []byte {
	b := encoding.AppendU32(nil, uint32(len(c.tables)))
	for _, t := range c.tables {
		b = append(b, byte(t.element), 1)
		b = encoding.AppendU32(b, t.Min)
		b = encoding.AppendU32(b, t.Max)
	}
	return b
}

// globalSection appends the fuel global, so that existing indexes remain valid.
func (c *contents) globalSection(s section) []byte {
	n, rest := c.elements(s)
	b := encoding.AppendU32(nil, n+1)
	b = append(b, rest...)
	b = append(b, byte(I64), 1, encoding.OpI64Const)
	b = append(b, 0)
	return append(b, encoding.OpEnd)
}

func (c *contents) exportSection(s section) []byte {
	n, rest := c.elements(s)
	if c.start >= 0 {
		n++
	}
	b := encoding.AppendU32(nil, n+1)
	b = append(b, rest...)
	if c.start >= 0 {
		b = encoding.AppendExport(b, StartExport, byte(KindFunction), c.start)
	}
	return encoding.AppendExport(b, FuelGlobal, byte(KindGlobal), c.globals())
}

// maxGrowth is the maximum factor by which metering may enlarge a module that is not small.
// Modules of common toolchains grow by a fifth.
const (
	maxGrowth   = 8
	smallModule = 64 << 10
)

// metered returns the code section with all functions metered, and the block types that
// they require.
func (c *contents) metered() (code []byte, added [][]ValueType, err *Error) {
	i := slices.IndexFunc(c.sections, func(s section) bool { return s.id == secCode })
	if i < 0 {
		return nil, nil, nil
	}
	s := c.sections[i]
	r := c.reader(s)
	n := r.count(3, "function bodies")
	code = make([]byte, 0, min((s.end-s.start)/3*4+16, maxGrowth*len(c.module)))
	room := maxGrowth*len(c.module) + smallModule
	if n == 0 {
		return encoding.AppendU32(code, 0), nil, nil
	}
	code = encoding.AppendU32(code, uint32(n+addedFunctions))
	w := walk{c: c}
	e := emitter{global: uint32(c.globals()), refuel: uint32(len(c.functions))}
	blocks := blockTypes{first: len(c.types) + addedFunctions}
	for i := range n {
		r.function = c.importedFunctions + i
		at := r.pos
		size := r.u32()
		if int64(size) > int64(r.rest()) {
			r.malformed(at, "announces a body of %d bytes, %d remain", size, r.rest())
		}
		if r.failed() {
			return nil, nil, r.err
		}
		w.r = r.sub(int(size))
		e.room = room - len(code)
		if err := c.function(&w, &e, &blocks); err != nil {
			return nil, nil, err
		}
		if len(e.out) > e.room {
			r.fail(ErrLimit, at, "do more work per call, loop iteration and bulk instruction",
				"metering would enlarge the module more than %d times", maxGrowth)
			return nil, nil, r.err
		}
		code = encoding.AppendU32(code, uint32(len(e.out)))
		if c.lines != nil {
			c.lines.record(e.copies, len(code), s.start)
		}
		code = append(code, e.out...)
	}
	for _, body := range [][]byte{c.refuelBody(), yieldBody} {
		code = encoding.AppendU32(code, uint32(len(body)))
		code = append(code, body...)
	}
	r.function = -1
	r.finish("code section")
	return code, blocks.added, r.err
}

// blockTypes assigns types to blocks without parameters.
type blockTypes struct {
	first int // index of the first added type
	added [][]ValueType
	index map[string]int
}

// of returns the block type for the given results.
func (b *blockTypes) of(results []ValueType) int64 {
	switch len(results) {
	case 0:
		return noResult - 0x80 // negative, in one byte
	case 1:
		return int64(results[0]) - 0x80
	}
	key := string(typeBytes(results))
	i, ok := b.index[key]
	if !ok {
		if b.index == nil {
			b.index = make(map[string]int)
		}
		i = b.first + len(b.added)
		b.index[key] = i
		b.added = append(b.added, results)
	}
	return int64(i)
}

func typeBytes(types []ValueType) []byte {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = byte(t)
	}
	return b
}

// function meters the function held by the walk's reader and writes it to e.out.
func (c *contents) function(w *walk, e *emitter, blocks *blockTypes) *Error {
	r := &w.r
	groups, locals := r.locals(c.options.MaxLocals)
	if r.failed() {
		return r.err
	}
	signature := c.types[c.functions[r.function]]
	w.locals = len(signature.Params) + locals.count
	if w.locals+2 > c.options.MaxLocals {
		r.fail(ErrLimit, locals.start, "split the function, or raise the limit",
			"%d locals plus two for metering exceed %d", w.locals, c.options.MaxLocals)
		return r.err
	}
	start := r.pos
	w.body(locals.count)
	if r.failed() {
		return r.err
	}
	e.simple, e.stack = w.isSimple(), 0
	frame := w.frameSize()
	if frame > int64(c.options.MaxFrame) {
		r.fail(ErrLimit, locals.start, "split the function, or use fewer locals", "%d instructions, and %d labels with %d locals each, may require %d MiB of stack, limit is %d MiB",
			w.instructions, w.labels, w.locals, frame>>20, c.options.MaxFrame>>20)
		return r.err
	}
	if w.calls {
		e.stack = uint32(frame / stackPerTick)
	}
	e.local, e.length = uint32(w.locals), uint32(w.locals)+1
	e.out, e.copies = e.out[:0], e.copies[:0]
	e.locals(groups, c.module[locals.start:start], w.hasBulk)
	if e.simple {
		e.simpleBody(c.module, start, r.end, w.marks[0].weight)
	} else {
		e.body(c.module, start, r.end, w.marks, blocks.of(signature.Results))
	}
	return nil
}

// declared describes the locals that a function declares.
type declared struct {
	start int // start of the first group
	count int // number of locals
}

// locals reads the locals of a function, in groups of one type.
func (r *reader) locals(limit int) (groups uint32, d declared) {
	groups = uint32(r.count(2, "groups of locals"))
	d.start = r.pos
	for range groups {
		at := r.pos
		n := int(r.u32())
		r.valueType()
		if r.failed() {
			return 0, d
		}
		if d.count += n; d.count > limit {
			r.fail(ErrLimit, at, "split the function, or raise the limit", "more than %d locals", limit)
			return 0, d
		}
	}
	return groups, d
}

// locals writes the groups of locals and appends those for metering, so that existing
// indexes remain valid.
func (e *emitter) locals(groups uint32, were []byte, hasBulk bool) {
	added := []byte{1, byte(I64), 1, byte(I32)}
	switch {
	case e.simple:
		added = nil
	case !hasBulk:
		added = added[:2]
	}
	e.out = encoding.AppendU32(e.out, groups+uint32(len(added)/2))
	e.out = append(e.out, were...)
	e.out = append(e.out, added...)
}
