package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// fileError says which file is not as it should be.
type FileError struct {
	Path string
	Err  error
}

func (p *FileError) Error() string { return fmt.Sprintf("%s: %v", filepath.Base(p.Path), p.Err) }

func (p *FileError) Unwrap() error { return p.Err }

// plain is err without the path, which is told already.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
