package importer

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

// filesError returns an error that names the files read; most traces have one.
func (b *builder) filesError(err error) error {
	return &FileError{File: strings.Join(b.report.Files, ", "), Err: err}
}
