package lines

import "bytes"

// fileName returns the name of a file of the unit, or "" if it is unknown. strings is the
// section .debug_line_str.
func (h header) fileName(index uint64, strings []byte) string {
	names := h.names
	if h.version == 5 {
		readEntries(&names, strings, noEntry) // directories
		return readEntries(&names, strings, index)
	}
	for len(names.text()) > 0 { // directories
	}
	for i := uint64(1); ; i++ { // a name, its directory, its time and its size
		name := names.text()
		if len(name) == 0 {
			return ""
		}
		if i == index {
			return string(name)
		}
		for range 3 {
			names.uleb()
		}
	}
}

// Content types and forms of the entries of version 5.
const (
	contentPath = 1

	formBlock2   = 0x03
	formBlock4   = 0x04
	formData2    = 0x05
	formData4    = 0x06
	formData8    = 0x07
	formString   = 0x08
	formBlock    = 0x09
	formBlock1   = 0x0a
	formData1    = 0x0b
	formStrp     = 0x0e
	formUdata    = 0x0f
	formData16   = 0x1e
	formLineStrp = 0x1f
)

// noEntry is the index of no entry.
const noEntry = ^uint64(0)

// readEntries skips a table of version 5 and returns the path of the entry with the given
// index, or "". It fails if an entry has an unknown form.
func readEntries(c *cursor, strings []byte, index uint64) (path string) {
	formats := make([][2]uint64, c.byte()) // content types and forms
	for i := range formats {
		formats[i] = [2]uint64{c.uleb(), c.uleb()}
	}
	n := c.uleb()
	if len(formats) == 0 {
		return "" // entries without content
	}
	for i := uint64(0); i < n && !c.failed; i++ {
		for _, f := range formats {
			if value := readForm(c, f[1], strings); f[0] == contentPath && i == index {
				path = string(value)
			}
		}
	}
	return path
}

// readForm reads a value and returns it if it is a string. Each form takes at least a byte,
// so that a loop over values ends with its section.
func readForm(c *cursor, form uint64, strings []byte) []byte {
	switch form {
	case formString:
		return c.text()
	case formLineStrp:
		return textAt(strings, c.u32())
	case formStrp, formData4:
		c.bytes(4)
	case formUdata:
		c.uleb()
	case formData1:
		c.bytes(1)
	case formData2:
		c.bytes(2)
	case formData8:
		c.bytes(8)
	case formData16:
		c.bytes(16)
	case formBlock:
		c.bytes(c.uleb())
	case formBlock1:
		c.bytes(uint64(c.byte()))
	case formBlock2:
		c.bytes(uint64(c.u16()))
	case formBlock4:
		c.bytes(uint64(c.u32()))
	default:
		c.fail()
	}
	return nil
}

// textAt returns the string at an offset of a section, or nil.
func textAt(section []byte, offset uint32) []byte {
	if uint64(offset) >= uint64(len(section)) {
		return nil
	}
	text, _, _ := bytes.Cut(section[offset:], []byte{0})
	return text
}
