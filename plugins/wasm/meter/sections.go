package meter

import "bytes"

// IDs of sections.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	secTag // exceptions
)

var sectionNames = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export",
	"start", "element", "code", "data", "data count", "tag",
}

// sectionRank is the position of a section in a module. Data count was added last to the
// format but precedes the code.
var sectionRank = [...]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6, secExport: 7,
	secStart: 8, secElement: 9, secDataCount: 10, secCode: 11, secData: 12,
}

var header = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// section is one section of a module without ID and size.
type section struct {
	id         byte
	start, end int
}

// split returns the sections of a module, without custom sections. It fails if one is
// repeated or out of order.
func split(module []byte) ([]section, *Error) {
	r := reader{buf: module, end: len(module), function: -1}
	if !bytes.HasPrefix(module, header[:4]) {
		r.fail(ErrMalformed, 0, "build for wasm32 (GOOS=wasip1 GOARCH=wasm, --target=wasm32)", "not a WebAssembly module")
		return nil, r.err
	}
	if !bytes.HasPrefix(module, header) {
		r.fail(ErrUnsupported, 4, "build a core module", "a WebAssembly component, or a version other than 1")
		return nil, r.err
	}
	r.pos = len(header)
	var found []section
	last := 0
	for r.rest() > 0 {
		s, ok := next(&r)
		if !ok {
			return nil, r.err
		}
		if s.id == secCustom {
			continue
		}
		if sectionRank[s.id] <= last {
			r.malformed(s.start, "section %s is repeated or out of order", sectionNames[s.id])
			return nil, r.err
		}
		last = sectionRank[s.id]
		found = append(found, s)
	}
	return found, nil
}

// next reads the header of the next section.
func next(r *reader) (section, bool) {
	at := r.pos
	id := r.byte()
	size := r.u32()
	if !r.failed() && int64(size) > int64(r.rest()) {
		r.malformed(at, "announces a section of %d bytes, %d remain", size, r.rest())
	}
	if r.failed() {
		return section{}, false
	}
	body := r.sub(int(size))
	switch {
	case id == secTag:
		r.fail(ErrUnsupported, at, "build without exceptions", "a tag section (exceptions)")
	case id > secTag:
		r.malformed(at, "unknown section ID %d", id)
	case id == secCustom:
		// The content of a custom section is ignored: by the specification it cannot make a
		// module invalid.
		body.section = sectionNames[secCustom]
		body.name("the name of a custom section")
		r.err = body.err
	}
	return section{id: id, start: body.pos, end: body.end}, !r.failed()
}
