package abi

import "unsafe"

// element is the type of a column's elements.
type element interface {
	~uint8 | ~int32 | ~int64 | ~float64
}

// raw returns the memory of a column as bytes. Frames are little-endian, as
// WebAssembly is and every supported machine; see LittleEndian.
func raw[T element](column []T) []byte {
	if len(column) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&column[0])), len(column)*int(unsafe.Sizeof(column[0])))
}

// view returns bytes as a column. The bytes must be aligned, as every column of an
// aligned frame is.
func view[T element](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

func text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

// LittleEndian reports whether this machine can read frames in place. Hosts and
// guests refuse to start if it returns false.
func LittleEndian() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}

// Grow returns a buffer of n bytes that is aligned for a frame: b if it is large
// enough, or else a new one with a quarter of spare capacity.
func Grow(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	words := make([][2]uint64, (n+n/4+Alignment-1)/Alignment)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*Alignment)[:n]
}

// aligned reports whether b can hold a frame.
func aligned(b []byte) bool {
	return len(b) > 0 && uintptr(unsafe.Pointer(&b[0]))%8 == 0
}
