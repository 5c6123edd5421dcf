package meter

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// A Patch completes a module that was compiled with parts left open. Indexes of all items
// remain valid.
type Patch struct {
	// Bodies replaces functions, by the names of their exports: the declarations of locals
	// and the instructions, as in the code section.
	Bodies map[string][]byte
	// Exports lists the exports that remain.
	Exports []string
	// Data is written to memory at DataAt when the module starts.
	Data   []byte
	DataAt uint32
}

// Exports returns the exports of a module.
func Exports(module []byte) ([]Export, error) {
	c, err := decode(module, Options{}.withDefaults())
	if err != nil {
		return nil, err
	}
	return c.exports, nil
}

// Apply returns the patched module. Types of instructions are left to the engine.
func (p *Patch) Apply(module []byte) ([]byte, error) {
	c, failure := decode(module, Options{}.withDefaults())
	if failure != nil {
		return nil, failure
	}
	bodies, err := p.byIndex(c)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(header)
	for _, s := range c.sections {
		content := c.module[s.start:s.end]
		switch s.id {
		case secExport:
			content = p.exportSection(c)
		case secCode:
			content = c.replaceBodies(s, bodies)
		case secDataCount:
			r := c.reader(s)
			content = encoding.AppendU32(nil, r.u32()+1)
		case secData:
			content = p.dataSection(c, s)
		}
		out = encoding.AppendSection(out, s.id, content)
	}
	return out, nil
}

// byIndex returns the new bodies by the index of their functions.
func (p *Patch) byIndex(c *contents) (map[int][]byte, error) {
	bodies := map[int][]byte{}
	for _, e := range c.exports {
		if body, ok := p.Bodies[e.Name]; ok && e.Kind == KindFunction && e.Index >= c.importedFunctions {
			bodies[e.Index-c.importedFunctions] = body
		}
	}
	if len(bodies) != len(p.Bodies) {
		return nil, fmt.Errorf("%d of %d functions to replace are exports of the module", len(bodies), len(p.Bodies))
	}
	return bodies, nil
}

func (p *Patch) exportSection(c *contents) []byte {
	kept := slices.DeleteFunc(slices.Clone(c.exports), func(e Export) bool { return !slices.Contains(p.Exports, e.Name) })
	b := encoding.AppendU32(nil, uint32(len(kept)))
	for _, e := range kept {
		b = encoding.AppendExport(b, e.Name, byte(e.Kind), e.Index)
	}
	return b
}

func (c *contents) replaceBodies(s section, bodies map[int][]byte) []byte {
	r := c.reader(s)
	n := r.u32()
	b := encoding.AppendU32(nil, n)
	for i := range int(n) {
		size := int(r.u32())
		body := c.module[r.pos : r.pos+size]
		r.skip(size)
		if other, ok := bodies[i]; ok {
			body = other
		}
		b = append(encoding.AppendU32(b, uint32(len(body))), body...)
	}
	return b
}

func (p *Patch) dataSection(c *contents, s section) []byte {
	n, rest := c.elements(s)
	b := append(encoding.AppendU32(nil, n+1), rest...)
	b = append(b, 0, encoding.OpI32Const) // active, in the only memory
	b = append(encoding.AppendS64(b, int64(int32(p.DataAt))), encoding.OpEnd)
	return append(encoding.AppendU32(b, uint32(len(p.Data))), p.Data...)
}
