package meter

import "github.com/cede-scheduler/cede/plugins/wasm/encoding"

// InstrumentPlainly charges as Instrument does, but each region directly in the global and
// without checks: the optimizations of Instrument must yield the same number.
func InstrumentPlainly(module []byte) ([]byte, error) {
	c, err := decode(module, Options{}.withDefaults())
	if err != nil {
		return nil, err
	}
	var code []byte
	for _, s := range c.sections {
		if s.id != secCode {
			continue
		}
		r := c.reader(s)
		n := r.u32()
		code = encoding.AppendU32(code, n)
		for i := range n {
			body := c.plainly(&r, int(i))
			code = encoding.AppendU32(code, uint32(len(body)))
			code = append(code, body...)
		}
	}
	out := append([]byte{}, header...)
	for _, s := range c.withFuel() {
		switch s.id {
		case secGlobal:
			out = encoding.AppendSection(out, s.id, c.globalSection(s))
		case secExport:
			out = encoding.AppendSection(out, s.id, c.exportSection(s))
		case secCode:
			out = encoding.AppendSection(out, s.id, code)
		default:
			out = encoding.AppendSection(out, s.id, c.module[s.start:s.end])
		}
	}
	return out, nil
}

// plainly meters one function.
func (c *contents) plainly(r *reader, i int) []byte {
	r.function = c.importedFunctions + i
	w := walk{c: c, r: r.sub(int(r.u32()))}
	groups, locals := w.r.locals(DefaultMaxLocals)
	w.locals = len(c.types[c.functions[r.function]].Params) + locals.count
	start := w.r.pos
	w.body(locals.count)
	e := emitter{global: uint32(c.globals()), local: uint32(w.locals), length: uint32(w.locals) + 1}
	e.locals(groups, c.module[locals.start:start], true)
	for _, m := range w.marks {
		e.out = append(e.out, c.module[start:m.at]...)
		start = int(m.at)
		switch m.kind {
		case markEntry, markLoop, markRegion:
			e.op(encoding.OpGlobalGet, e.global)
			e.i64(int64(m.weight))
			e.out = append(e.out, encoding.OpI64Sub)
			e.op(encoding.OpGlobalSet, e.global)
		case markBytes, markElements, markPages:
			e.op(encoding.OpGlobalGet, e.global)
			e.op(encoding.OpLocalSet, e.local)
			e.bulk(m.kind)
			e.flush()
		}
	}
	return append(e.out, c.module[start:w.r.end]...)
}
