package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// A FileError reports which file of a part is damaged or unreadable.
type FileError struct {
	Path string
	Err  error
}

func (p *FileError) Error() string { return fmt.Sprintf("%s: %v", filepath.Base(p.Path), p.Err) }

func (p *FileError) Unwrap() error { return p.Err }

// WithoutPath returns err without its path if it is a *fs.PathError. Callers add the path
// themselves.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
