package meter

import (
	"fmt"
	"unicode/utf8"
)

// reader reads a part of a module. After the first failure it stops, and every further read
// returns zero, so callers only check for failure before they loop or allocate.
type reader struct {
	buf []byte // the whole module; positions are offsets in it
	pos int
	end int
	// section and function locate errors.
	section  string
	function int
	err      *Error
}

// fail records the first error at the given offset.
func (r *reader) fail(kind error, offset int, hint, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{
			Kind: kind, Offset: offset, Section: r.section, Function: r.function,
			What: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	r.pos = r.end
}

func (r *reader) malformed(offset int, format string, args ...any) {
	r.fail(ErrMalformed, offset, "", format, args...)
}

func (r *reader) failed() bool { return r.err != nil }

// rest returns the number of remaining bytes.
func (r *reader) rest() int { return r.end - r.pos }

// sub returns a reader of the next n bytes, which r skips.
func (r *reader) sub(n int) reader {
	s := *r
	s.end = r.pos + n
	r.pos += n
	return s
}

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.malformed(r.pos, "ends too early")
		return 0
	}
	b := r.buf[r.pos]
	r.pos++
	return b
}

// skip skips n bytes.
func (r *reader) skip(n int) {
	if n > r.rest() {
		r.malformed(r.pos, "ends too early: requires %d more bytes, %d remain", n, r.rest())
		return
	}
	r.pos += n
}

// zero reads a reserved byte that must be zero.
func (r *reader) zero(what string) {
	at := r.pos
	if b := r.byte(); b != 0 && !r.failed() {
		r.fail(ErrUnsupported, at, "build for one memory", "%s names memory %d (multi-memory)", what, b)
	}
}

// u32 reads an unsigned LEB128 number of at most five bytes. As the specification permits,
// it accepts long encodings but not large numbers.
func (r *reader) u32() uint32 {
	start := r.pos
	if r.pos < r.end && r.buf[r.pos] < 0x80 { // the common case
		r.pos++
		return uint32(r.buf[r.pos-1])
	}
	var v uint32
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if r.failed() {
			return 0
		}
		if shift == 28 && b > 0x0f {
			r.malformed(start, "number exceeds 32 bits")
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// signed reads a signed LEB128 number of the given width in bits: 32, 33 or 64.
func (r *reader) signed(width int) int64 {
	start := r.pos
	var v int64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if r.failed() {
			return 0
		}
		left := width - shift // bits that this byte may contain
		if left < 7 && !signFits(b, left) {
			r.malformed(start, "number exceeds %d bits", width)
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// signFits reports whether b can be the last byte of a signed number with left remaining
// bits: the bits above must repeat the sign, and no byte may follow.
func signFits(b byte, left int) bool {
	if b >= 0x80 {
		return false
	}
	above := int8(b<<1) >> left // the sign bit and all bits above
	return above == 0 || above == -1
}

// count reads the length of a vector with elements of at least size bytes each, so that
// callers never allocate for elements that cannot exist.
func (r *reader) count(size int, what string) int {
	at := r.pos
	n := r.u32()
	if int64(n)*int64(size) > int64(r.rest()) {
		r.malformed(at, "announces %d %s in %d bytes", n, what, r.rest())
		return 0
	}
	return int(n)
}

// name reads a UTF-8 string.
func (r *reader) name(what string) string {
	at := r.pos
	n := r.count(1, "bytes of "+what)
	b := r.buf[r.pos : r.pos+n]
	if !utf8.Valid(b) {
		r.malformed(at, "%s is not UTF-8", what)
		return ""
	}
	r.pos += n
	return string(b)
}

// finish fails if bytes remain.
func (r *reader) finish(what string) {
	if !r.failed() && r.pos != r.end {
		r.malformed(r.pos, "%d bytes remain at the end of the %s", r.rest(), what)
	}
}
