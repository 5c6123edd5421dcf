package build

import (
	"fmt"
	"strings"
)

// FileError is an error in one file of a trace.
type FileError struct {
	File string // relative to the folder of the trace
	Line int    // 0 if the error concerns the whole file
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.File, e.Err)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// FileErrors lists several errors in the files of a trace. It is never empty.
type FileErrors []*FileError

func (e FileErrors) Error() string {
	var b strings.Builder
	for i, one := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.Error())
	}
	return b.String()
}

// Unwrap returns the errors.
func (e FileErrors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// maxProblems bounds the number of errors of a file that are listed.
const maxProblems = 20

// Problems collects the errors in the rows of one file, so that an import reports all of
// them at once. Reading stops after maxProblems errors, and at errors after which rows can
// no longer be separated.
type Problems struct {
	file   string
	line   int // of the current row
	column int // column of the last invalid value of the row; -1: none
	list   FileErrors
	failed bool // the current row has an error
	ended  bool
}

// start begins a row. It returns false if reading must stop.
func (p *Problems) start() bool {
	if p.ended || len(p.list) >= maxProblems {
		if !p.ended {
			p.ended = true
			p.list = append(p.list, &FileError{p.file, p.line, fmt.Errorf("reading stopped after %d errors", maxProblems)})
		}
		return false
	}
	p.failed, p.column = false, -1
	return true
}

func (p *Problems) add(format string, args ...any) { p.FailAt(p.line, format, args...) }

// Fail records an error of the current row, unless there is one already.
func (p *Problems) Fail(format string, args ...any) {
	if !p.failed {
		p.add(format, args...)
	}
}

// FailAt records an error of a line. Rows that span several lines start at that line.
func (p *Problems) FailAt(line int, format string, args ...any) {
	p.failed = true
	p.list = append(p.list, &FileError{p.file, line, fmt.Errorf(format, args...)})
}

// stop records an error after which nothing can be read.
func (p *Problems) stop(format string, args ...any) {
	p.add(format, args...)
	p.ended = true
}

// Failed reports whether the current row has an error.
func (p *Problems) Failed() bool { return p.failed }

// Line returns the number of the current line, from 1.
func (p *Problems) Line() int { return p.line }

// Err returns the errors so far, or nil: a FileError, or FileErrors if there are several.
func (p *Problems) Err() error {
	switch len(p.list) {
	case 0:
		return nil
	case 1:
		return p.list[0]
	}
	return p.list
}

// FilesError returns an error that names the files read; most traces have one.
func (b *Builder) FilesError(err error) error {
	return &FileError{File: strings.Join(b.Report.Files, ", "), Err: err}
}
