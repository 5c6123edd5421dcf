// Package scratch resizes buffers that are reused between calls, so that a search in
// steady state allocates nothing.
//
// It never shrinks a buffer. The packages of core/preempt call it.
//
// Functions are pure but for the buffer that they are passed.
package scratch

import "slices"

// Sized returns s with length n. Its elements are undefined.
func Sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// Zeroed returns s with length n and every element zero.
func Zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// Filled returns s with length n and every element equal to v.
func Filled[T any](s []T, n int, v T) []T {
	s = Sized(s, n)
	for i := range s {
		s[i] = v
	}
	return s
}

// Extended returns s with zeros appended up to length n.
func Extended[T any](s []T, n int) []T {
	from := len(s)
	s = slices.Grow(s, n-from)[:n]
	clear(s[from:])
	return s
}

// Columns sets the number of columns of a table to n. Removed columns keep their
// memory for a later call.
func Columns(table *[][]float64, n int) {
	for len(*table) < n {
		*table = append(*table, nil)
	}
	*table = (*table)[:n]
}
