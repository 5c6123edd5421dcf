package abi

import (
	"encoding/binary"
	"unsafe"
)

// directory finds the columns of a frame by their IDs. A guest looks up some forty
// columns per frame. In WebAssembly it is much faster to index all columns first than
// to dispatch on the ID of each.
type directory struct {
	entries  []columnEntry
	position [8][24]uint32 // in entries, plus one, by the two bytes of an id
	bad      bool          // a column that was looked up has the wrong type or length
}

// columnEntry is an entry in the layout of a frame.
type columnEntry struct {
	id         ID
	typ        Type
	off, count uint32
}

// index reads the entries of all columns. If a column occurs twice, the last one
// counts.
func (d *Decoder) index() error {
	c := &d.columns
	c.position, c.bad = [8][24]uint32{}, false
	c.entries = d.columnEntries()
	size := uint64(len(d.frame))
	for i := range c.entries {
		e := &c.entries[i]
		if each := uint64(e.typ.Size()); each != 0 { // 0: a type of a newer host
			if e.off%8 != 0 || uint64(e.off)+uint64(e.count)*each > size {
				return ErrColumn
			}
		}
		if group, k := e.id>>8, e.id&0xff; group < 8 && k < 24 {
			c.position[group][k] = uint32(i + 1)
		}
	}
	return d.loadStrings()
}

// columnEntries returns the entries in place, or a copy if they cannot be read in
// place.
func (d *Decoder) columnEntries() []columnEntry {
	at, n := d.entries(offColumns, offColumnsOff)
	if n == 0 {
		return nil
	}
	if at%4 == 0 {
		return unsafe.Slice((*columnEntry)(unsafe.Pointer(&d.frame[at])), n)
	}
	le := binary.LittleEndian
	var to []columnEntry
	for range n {
		b := d.frame[at : at+EntryLen]
		to = append(to, columnEntry{ID(le.Uint32(b)), Type(le.Uint32(b[4:])), le.Uint32(b[8:]), le.Uint32(b[12:])})
		at += EntryLen
	}
	return to
}

// column returns the bytes of a column and whether it is present. If its type or its
// number of elements differs, it marks the frame as bad. n < 0 accepts any number.
func (d *Decoder) column(id ID, t Type, n int64) ([]byte, bool) {
	c := &d.columns
	i := c.position[id>>8][id&0xff]
	if i == 0 {
		return nil, false
	}
	e := &c.entries[i-1]
	if e.typ != t || n >= 0 && int64(e.count) != n {
		c.bad = true
		return nil, false
	}
	off := int(e.off)
	return d.frame[off : off+int(e.count)*int(sizes[t])], true
}

// has reports whether a column is present.
func (d *Decoder) has(id ID) bool { return d.columns.position[id>>8][id&0xff] != 0 }

func (d *Decoder) bytes(id ID, n int) []uint8 {
	b, _ := d.column(id, U8, int64(n))
	return b
}

func (d *Decoder) int32s(id ID, n int) []int32 {
	b, _ := d.column(id, I32, int64(n))
	return view[int32](b)
}

func (d *Decoder) int64s(id ID, n int) []int64 {
	b, _ := d.column(id, I64, int64(n))
	return view[int64](b)
}

func (d *Decoder) floats(id ID, n int) []float64 {
	b, _ := d.column(id, F64, int64(n))
	return view[float64](b)
}

// int32 returns the value of a column with one element, or 0 if it is missing.
func (d *Decoder) int32(id ID) int32 {
	if c := d.int32s(id, 1); len(c) == 1 {
		return c[0]
	}
	return 0
}

// text returns the value of a column with one string, or "" if it is missing.
func (d *Decoder) text(id ID) string {
	if c := d.int32s(id, 1); len(c) == 1 {
		return d.string(c[0])
	}
	return ""
}

// floatTable appends the rows of a table, each with n elements.
func (d *Decoder) floatTable(to [][]float64, id ID, rows, n int) [][]float64 {
	b, ok := d.column(id, F64, int64(rows)*int64(n))
	if !ok {
		return to
	}
	all := view[float64](b)
	for ; rows > 0; rows-- {
		to = append(to, all[:n:n])
		all = all[n:]
	}
	return to
}

// loadStrings reads the string table.
func (d *Decoder) loadStrings() error {
	ends, bytes := d.int32s(StringEnd, -1), d.bytes(StringBytes, -1)
	if d.columns.bad {
		return ErrColumn
	}
	d.strings = d.strings[:0]
	from := int32(0)
	for _, end := range ends {
		if end < from || int(end) > len(bytes) {
			return ErrColumn
		}
		d.strings = append(d.strings, text(bytes[from:end]))
		from = end
	}
	return nil
}

// names appends the strings with the given ids.
func (d *Decoder) names(to []string, ids []int32) []string {
	for _, id := range ids {
		to = append(to, d.string(id))
	}
	return to
}

// positions returns a column of start positions. It must begin at 0, must not
// decrease, and must end at n, the number of elements, because policies index by it;
// otherwise the frame is marked as bad.
func (d *Decoder) positions(id ID, count, n int) []int32 {
	first := d.int32s(id, count)
	if first == nil {
		return nil
	}
	at := int32(0)
	for _, f := range first {
		if f < at {
			d.columns.bad = true
		}
		at = f
	}
	if first[0] != 0 || int(at) != n {
		d.columns.bad = true
	}
	return first
}
