package meter

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
)

// maxNames is the maximum size of all function names that a metered module retains, in
// bytes. A module with more loses all of them: they only make errors readable.
const maxNames = 256 << 10

// functionNames is the subsection of function names in the custom section "name".
const functionNames = 1

// functionName is the name of a function by its index, which metering does not change.
type functionName struct {
	index uint32
	name  []byte
}

// nameSection returns a name section with the names of existing functions, or nil if the
// module has none. It is written anew and refers to nothing else in the module, because an
// engine must not read custom sections that nothing has checked. A malformed section is
// ignored: by the specification it cannot make a module invalid.
func (c *contents) nameSection() []byte {
	names := c.functionNames()
	if len(names) == 0 {
		return nil
	}
	b := encoding.AppendU32(nil, uint32(len(names)))
	for _, f := range names {
		b = encoding.AppendU32(b, f.index)
		b = encoding.AppendU32(b, uint32(len(f.name)))
		b = append(b, f.name...)
	}
	return encoding.AppendSection(append([]byte{4}, "name"...), functionNames, b)
}

func (c *contents) functionNames() []functionName {
	body, found := c.custom("name")
	if !found {
		return nil
	}
	return c.namesIn(body)
}

// custom returns a reader of the content of the first custom section with the given name.
func (c *contents) custom(name string) (content reader, found bool) {
	r := reader{buf: c.module, pos: len(header), end: len(c.module), function: -1}
	for r.rest() > 0 {
		id := r.byte()
		body := r.sub(int(r.u32()))
		if r.failed() {
			return reader{}, false
		}
		if id != secCustom {
			continue
		}
		if n := int(body.u32()); !body.failed() && n == len(name) && n <= body.rest() && string(c.module[body.pos:body.pos+n]) == name {
			body.skip(n)
			return body, true
		}
	}
	return reader{}, false
}

// namesIn reads the subsections of a name section.
func (c *contents) namesIn(r reader) []functionName {
	for r.rest() > 0 && !r.failed() {
		id := r.byte()
		size := int(r.u32())
		if r.failed() || size > r.rest() {
			return nil
		}
		body := r.sub(size)
		if id == functionNames {
			return c.readNames(body)
		}
	}
	return nil
}

func (c *contents) readNames(r reader) []functionName {
	var names []functionName
	total := 0
	for range r.count(2, "names") {
		f := functionName{index: r.u32()}
		n := r.count(1, "bytes of a name")
		if r.failed() {
			return nil
		}
		f.name = c.module[r.pos : r.pos+n]
		r.skip(n)
		if total += n; total > maxNames {
			return nil
		}
		if int64(f.index) < int64(len(c.functions)) && n > 0 && utf8.Valid(f.name) {
			names = append(names, f)
		}
	}
	slices.SortStableFunc(names, func(a, b functionName) int { return cmp.Compare(a.index, b.index) })
	return slices.CompactFunc(names, func(a, b functionName) bool { return a.index == b.index })
}
