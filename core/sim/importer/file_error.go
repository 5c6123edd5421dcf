package importer

import (
	"fmt"
	"strings"
)

// FileError is what is wrong with one file of a trace.
type FileError struct {
	File string // within the trace's folder
	Line int    // 0: the file as a whole
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.File, e.Err)
}

// Unwrap gives what is wrong.
func (e *FileError) Unwrap() error { return e.Err }

// filesError blames the files that were read, which is one for most traces.
func (b *builder) filesError(err error) error {
	return &FileError{File: strings.Join(b.report.Files, ", "), Err: err}
}
