// Package logfile stores the output of tasks: one unbounded stream per output, of
// which the newest part is on disk. A stream consists of files that are named after
// the offset of their first byte. An offset therefore remains valid if files are
// dropped and if another agent takes over.
//
// A Writer belongs to one goroutine and is the only one of its stream. Readers are
// independent of it and of each other, and may be in another process.
package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Writer appends to a stream.
type Writer struct {
	base    string
	maxSize int64 // of one file, bytes
	keep    int   // maximum number of files, including the current one

	f    *os.File
	size int64 // of f
	end  int64 // of the stream
}

// NewWriter returns a writer that appends to the stream at base, which is a path
// without its ending. A file has at most maxSize bytes, and the newest keep files are
// retained.
func NewWriter(base string, maxSize int64, keep int) (*Writer, error) {
	w := &Writer{base: base, maxSize: max(maxSize, 1), keep: max(keep, 1)}
	parts, err := parts(base)
	if err != nil {
		return nil, err
	}
	if n := len(parts); n > 0 {
		last := parts[n-1]
		w.end = last.end()
		if last.size < maxSize {
			w.size = last.size
			w.f, err = os.OpenFile(last.path, os.O_WRONLY|os.O_APPEND, 0)
			return w, err
		}
	}
	return w, w.next()
}

// next starts a file at the end of the stream and drops the oldest.
func (w *Writer) next() error {
	if w.f != nil {
		if err := w.f.Close(); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name(w.base, w.end), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	w.f, w.size = f, 0
	parts, err := parts(w.base)
	if err != nil {
		return err
	}
	for _, p := range parts[:max(len(parts)-w.keep, 0)] {
		_ = os.Remove(p.path) // an extra file does no harm
	}
	return nil
}

// Write appends b. It starts further files as necessary.
func (w *Writer) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		if w.size >= w.maxSize {
			if err := w.next(); err != nil {
				return written, err
			}
		}
		part := b[:min(int64(len(b)), w.maxSize-w.size)]
		n, err := w.f.Write(part)
		written, w.size, w.end = written+n, w.size+int64(n), w.end+int64(n)
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// Close closes the current file.
func (w *Writer) Close() error { return w.f.Close() }

// ReadAt reads from an offset of the stream at base. It returns the offset at which
// it read, which is later if the requested bytes were dropped. If it returns 0 bytes
// and no error, the stream has not reached the offset yet.
func ReadAt(base string, b []byte, offset int64) (n int, from int64, err error) {
	for range 3 { // a file may be dropped between listing and opening
		parts, err := parts(base)
		if err != nil || len(parts) == 0 {
			return 0, offset, err
		}
		from = min(max(offset, parts[0].start), parts[len(parts)-1].end())
		i := slices.IndexFunc(parts, func(p part) bool { return from < p.end() })
		if i < 0 {
			return 0, from, nil
		}
		n, err = parts[i].read(b, from)
		if !os.IsNotExist(err) {
			return n, from, err
		}
	}
	return 0, offset, fmt.Errorf("%s: files are dropped faster than they are read", base)
}

// Bounds returns the offsets of the first retained byte and of the end.
func Bounds(base string) (start, end int64, err error) {
	parts, err := parts(base)
	if err != nil || len(parts) == 0 {
		return 0, 0, err
	}
	return parts[0].start, parts[len(parts)-1].end(), nil
}

// part is one file of a stream.
type part struct {
	path        string
	start, size int64
}

func (p part) end() int64 { return p.start + p.size }

func (p part) read(b []byte, offset int64) (int, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	n, err := f.ReadAt(b[:min(int64(len(b)), p.end()-offset)], offset-p.start)
	if n > 0 {
		err = nil
	}
	return n, err
}

// parts returns a stream's files by offset.
func parts(base string) ([]part, error) {
	entries, err := os.ReadDir(filepath.Dir(base))
	if err != nil {
		return nil, err
	}
	var list []part
	for _, e := range entries {
		offset, ok := strings.CutPrefix(e.Name(), filepath.Base(base)+".")
		if !ok {
			continue
		}
		start, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || start < 0 {
			continue // not a file of the stream
		}
		info, err := e.Info()
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, part{filepath.Join(filepath.Dir(base), e.Name()), start, info.Size()})
	}
	slices.SortFunc(list, func(a, b part) int { return int(min(max(a.start-b.start, -1), 1)) })
	return list, nil
}

func name(base string, offset int64) string { return fmt.Sprintf("%s.%d", base, offset) }
