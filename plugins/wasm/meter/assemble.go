package meter

import "slices"

// assemble writes the metered module.
func assemble(c *contents) ([]byte, *Error) {
	code, added, err := c.metered()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(c.module)+len(code)+64)
	out = append(out, header...)
	for _, s := range c.withFuel() {
		switch s.id {
		case secType:
			out = appendSection(out, s.id, c.typeSection(s, added))
		case secTable:
			out = appendSection(out, s.id, c.tableSection())
		case secGlobal:
			out = appendSection(out, s.id, c.globalSection(s))
		case secExport:
			out = appendSection(out, s.id, c.exportSection(s))
		case secCode:
			out = appendSection(out, s.id, code)
		default:
			out = appendSection(out, s.id, c.module[s.start:s.end])
		}
	}
	return out, nil
}

// withFuel are the sections with those that hold the fuel and its export, empty
// where the module has none.
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

func appendSection(out []byte, id byte, body []byte) []byte {
	out = append(out, id)
	out = appendU32(out, uint32(len(body)))
	return append(out, body...)
}

// elements are the bytes of a vector behind its length; none if the section was
// not in the module.
func (c *contents) elements(s section) (n uint32, rest []byte) {
	if s.start == s.end {
		return 0, nil
	}
	r := c.reader(s)
	n = r.u32()
	return n, c.module[r.pos:s.end]
}

// typeSection adds the types of blocks behind all others, so that no index moves.
func (c *contents) typeSection(s section, added [][]ValueType) []byte {
	n, rest := c.elements(s)
	b := appendU32(nil, n+uint32(len(added)))
	b = append(b, rest...)
	for _, results := range added {
		b = append(b, 0x60, 0)
		b = appendU32(b, uint32(len(results)))
		b = append(b, typeBytes(results)...)
	}
	return b
}

// tableSection is written anew because tables get a maximum.
func (c *contents) tableSection() []byte {
	b := appendU32(nil, uint32(len(c.tables)))
	for _, t := range c.tables {
		b = append(b, byte(t.element), 1)
		b = appendU32(b, t.Min)
		b = appendU32(b, t.Max)
	}
	return b
}

// globalSection adds the fuel behind all other globals, so that no index moves.
func (c *contents) globalSection(s section) []byte {
	n, rest := c.elements(s)
	b := appendU32(nil, n+1)
	b = append(b, rest...)
	b = append(b, byte(I64), 1, opI64Const)
	b = appendS64(b, c.options.StartFuel)
	return append(b, opEnd)
}

func (c *contents) exportSection(s section) []byte {
	n, rest := c.elements(s)
	b := appendU32(nil, n+1)
	b = append(b, rest...)
	b = appendU32(b, uint32(len(FuelGlobal)))
	b = append(b, FuelGlobal...)
	b = append(b, byte(KindGlobal))
	return appendU32(b, uint32(c.globals()))
}

// maxGrowth is how many times larger metering may make a module that is not
// small. What toolchains write becomes a fifth larger.
const (
	maxGrowth   = 8
	smallModule = 64 << 10
)

// metered is the code section with all functions metered, and the types of
// blocks that they need.
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
	code = appendU32(code, uint32(n))
	w := walk{c: c}
	e := emitter{global: uint32(c.globals())}
	blocks := blockTypes{first: len(c.types)}
	for i := range n {
		r.function = c.importedFunctions + i
		at := r.pos
		size := r.u32()
		if int64(size) > int64(r.rest()) {
			r.malformed(at, "a body of %d bytes is announced, %d are there", size, r.rest())
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
			r.fail(ErrLimit, at, "let its calls, loops and lengths do more at a time",
				"metering would make the module more than %d times as large", maxGrowth)
			return nil, nil, r.err
		}
		code = appendU32(code, uint32(len(e.out)))
		code = append(code, e.out...)
	}
	r.function = -1
	r.finish("code section")
	return code, blocks.added, r.err
}

// blockTypes finds the types of blocks without parameters.
type blockTypes struct {
	first int // the index of the first that is added
	added [][]ValueType
	index map[string]int
}

// of is what a block with the given results has for its type.
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

// function meters the function that the walk's reader holds into e.out.
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
			"%d locals and the two for metering are more than %d", w.locals, c.options.MaxLocals)
		return r.err
	}
	start := r.pos
	w.body(locals.count)
	if r.failed() {
		return r.err
	}
	e.simple = w.isSimple()
	e.local, e.length = uint32(w.locals), uint32(w.locals)+1
	e.out = e.out[:0]
	e.locals(groups, c.module[locals.start:start], w.hasBulk)
	if e.simple {
		e.simpleBody(c.module[start:r.end], w.marks[0].weight)
	} else {
		e.body(c.module, start, r.end, w.marks, blocks.of(signature.Results))
	}
	return nil
}

// declared are the locals that a function declares.
type declared struct {
	start int // where the first group is
	count int // of locals
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
			r.fail(ErrLimit, at, "split the function, or raise the limit", "there are more than %d locals", limit)
			return 0, d
		}
	}
	return groups, d
}

// locals writes the groups of locals with those that metering needs behind all
// others, so that no index moves.
func (e *emitter) locals(groups uint32, were []byte, hasBulk bool) {
	added := []byte{1, byte(I64), 1, byte(I32)}
	switch {
	case e.simple:
		added = nil
	case !hasBulk:
		added = added[:2]
	}
	e.out = appendU32(e.out, groups+uint32(len(added)/2))
	e.out = append(e.out, were...)
	e.out = append(e.out, added...)
}
