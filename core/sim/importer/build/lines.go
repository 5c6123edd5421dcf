package build

import (
	"bufio"
	"errors"
	"strconv"
	"strings"
)

// Lines reads a text file line by line. Lines may end in CR LF.
type Lines struct {
	Problems
	Text   string // valid until the next call of Next
	scan   *bufio.Scanner
	closer *Reader
	report *Report // for a note if the file is cut off; may be nil
}

// Lines opens a text file.
func (s Source) Lines(name string) (*Lines, error) {
	r, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	l := &Lines{Problems: Problems{file: name}, closer: r, scan: bufio.NewScanner(r)}
	l.scan.Buffer(nil, maxRow)
	return l, nil
}

// Close closes the file.
func (l *Lines) Close() error { return l.closer.Close() }

// Next reads a line. It returns false at the end or if reading cannot continue.
func (l *Lines) Next() bool {
	if !l.start() {
		return false
	}
	l.line++
	if l.scan.Scan() {
		l.Text = l.scan.Text()
		return true
	}
	switch err := l.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		l.stop("a line longer than %d bytes", maxRow)
	case err != nil:
		l.stop("cannot continue reading: %w", err)
	case l.line > 1:
		l.closer.noteCut(l.report, l.file, l.line-1)
	}
	return false
}

// Integer reads field i. Some logs write integers with decimals, which are truncated.
func (l *Lines) Integer(f []string, i int) int64 {
	whole, _, _ := strings.Cut(f[i], ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		l.add("column %d is %.40q; expected a number", i+1, f[i])
	}
	return n
}

// Number reads field i, which must be between 0 and most.
func (l *Lines) Number(f []string, i int, most int64) int64 {
	n := l.Integer(f, i)
	if !l.failed && (n < 0 || n > most) {
		l.Fail("column %d is %d; expected 0 to %d", i+1, n, most)
		return 0
	}
	return n
}
