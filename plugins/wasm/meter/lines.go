package meter

import (
	"bytes"
	"slices"
	"sort"

	"github.com/cede-scheduler/cede/plugins/wasm/encoding"
	"github.com/cede-scheduler/cede/plugins/wasm/lines"
)

// Limits on line tables. A module beyond them is loaded without: lines only make errors
// readable. Engines record about 16 bytes for each instruction of a module with lines.
const (
	maxLineTable  = 512 << 10 // of each section, in bytes
	maxTracedCode = 1 << 20   // of the code section, in bytes
)

// Lines finds source lines for offsets in the code section of a metered module. It is safe
// for concurrent use.
type Lines struct {
	table, strings []byte // the sections .debug_line and .debug_line_str
	copies         []copied
}

// copied is a part of the code section that metering copied. Offsets count from the start
// of the content of the section.
type copied struct {
	original, metered, length uint32
}

// readLines returns the line table of the module, or nil if it has none within the limits.
func (c *contents) readLines() *Lines {
	i := slices.IndexFunc(c.sections, func(s section) bool { return s.id == secCode })
	if i < 0 || c.sections[i].end-c.sections[i].start > maxTracedCode {
		return nil
	}
	table, found := c.custom(".debug_line")
	if !found || table.rest() > maxLineTable {
		return nil
	}
	l := &Lines{table: bytes.Clone(c.module[table.pos:table.end])}
	if strings, found := c.custom(".debug_line_str"); found && strings.rest() <= maxLineTable {
		l.strings = bytes.Clone(c.module[strings.pos:strings.end])
	}
	return l
}

// Find returns the source line of each offset in the code section of the metered module, or
// the zero Place if it is unknown. It reads the whole table: a few milliseconds at most.
func (l *Lines) Find(offsets []uint32) []lines.Place {
	original := make([]uint32, len(offsets))
	for i, o := range offsets {
		original[i] = l.original(o)
	}
	return lines.Find(l.table, l.strings, original)
}

// original returns the offset in the module that was loaded, or 0, which is no offset of an
// instruction, for instructions that metering inserted.
func (l *Lines) original(metered uint32) uint32 {
	i := sort.Search(len(l.copies), func(i int) bool { return l.copies[i].metered > metered }) - 1
	if i < 0 || metered-l.copies[i].metered >= l.copies[i].length {
		return 0
	}
	return l.copies[i].original + metered - l.copies[i].metered
}

// record adds the copies of a function, whose body starts at the given offset. code is the
// start of the code section in the module.
func (l *Lines) record(copies []copied, body, code int) {
	for _, c := range copies {
		c.metered += uint32(body)
		c.original -= uint32(code)
		l.copies = append(l.copies, c)
	}
}

// Sections with which an engine adds the offset of each frame to its stack traces: a DWARF
// unit that covers all code with the line 1 of the file "code". They refer to nothing in the
// module, whose own sections an engine must not read.
var offsetSections = []struct {
	name    string
	content []byte
}{
	{".debug_abbrev", []byte{
		1, 0x11, 0, // 1: a compile unit without children
		0x10, 0x17, // DW_AT_stmt_list, DW_FORM_sec_offset
		0x11, 0x01, // DW_AT_low_pc, DW_FORM_addr
		0x12, 0x06, // DW_AT_high_pc, DW_FORM_data4: the length
		0, 0, 0,
	}},
	{".debug_info", []byte{
		20, 0, 0, 0, 4, 0, 0, 0, 0, 0, 4, // length, version, offset of abbreviations, address size
		1, 0, 0, 0, 0, 1, 0, 0, 0, 0xfe, 0xff, 0xff, 0x7f, // covers 1 to 0x7fffffff
	}},
	{".debug_line", []byte{
		40, 0, 0, 0, 4, 0, 16, 0, 0, 0, // lengths, version
		1, 1, 1, 0, 1, 1, // an opcode adds 0 to the line, and there are only special opcodes
		0, 'c', 'o', 'd', 'e', 0, 0, 0, 0, 0, // no directories, one file
		0, 5, 2, 1, 0, 0, 0, 1, // address 1: a row
		0, 5, 2, 0xff, 0xff, 0xff, 0x7f, 0, 1, 1, // address 0x7fffffff: the end
	}},
}

func appendOffsetSections(out []byte) []byte {
	for _, s := range offsetSections {
		body := encoding.AppendU32(nil, uint32(len(s.name)))
		body = append(body, s.name...)
		out = encoding.AppendSection(out, secCustom, append(body, s.content...))
	}
	return out
}
