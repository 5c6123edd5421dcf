package lines

import (
	"bytes"
	"encoding/binary"
)

// cursor reads a part of a section. After the first failure it is at its end, and every
// further read returns zero.
type cursor struct {
	buf    []byte
	failed bool
}

func (c *cursor) fail() { c.buf, c.failed = nil, true }

// bytes returns the next n bytes, or nil.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.buf)) {
		c.fail()
		return nil
	}
	b := c.buf[:n]
	c.buf = c.buf[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// uleb reads an unsigned LEB128 number. Bits above 64 are lost.
func (c *cursor) uleb() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := c.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// sleb reads a signed LEB128 number. Bits above 64 are lost.
func (c *cursor) sleb() (v int64) {
	for shift := 0; ; {
		b := c.byte()
		v |= int64(b&0x7f) << shift
		shift += 7
		if b < 0x80 {
			if b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// text reads a string that ends with a zero byte.
func (c *cursor) text() []byte {
	end := bytes.IndexByte(c.buf, 0)
	if end < 0 {
		c.fail()
		return nil
	}
	b := c.bytes(uint64(end))
	c.byte()
	return b
}
