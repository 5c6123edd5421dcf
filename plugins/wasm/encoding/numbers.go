package encoding

// AppendU32 appends an unsigned LEB128 number.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendS64 appends a signed LEB128 number.
func AppendS64(b []byte, v int64) []byte {
	for {
		c := byte(v) & 0x7f
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// AppendName appends a text with its length.
func AppendName(b []byte, name string) []byte {
	return append(AppendU32(b, uint32(len(name))), name...)
}

// AppendSection appends a section: its ID, length and content.
func AppendSection(b []byte, id byte, body []byte) []byte {
	b = append(b, id)
	b = AppendU32(b, uint32(len(body)))
	return append(b, body...)
}

// AppendExport appends the export of an item by its kind and index.
func AppendExport(b []byte, name string, kind byte, index int) []byte {
	return AppendU32(append(AppendName(b, name), kind), uint32(index))
}
