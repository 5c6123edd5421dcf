package badgerdb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// engineError is why a Badger directory does not open.
func OpenError(part, path, remedy string, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "Cannot acquire directory lock"):
		return fmt.Errorf("%w: another process has opened %s", datadir.ErrLocked, path)
	case strings.Contains(text, "permission denied"), strings.Contains(text, "read-only file system"):
		return fmt.Errorf("%s at %s: %w", part, path, err)
	case strings.Contains(text, "no space left"):
		return fmt.Errorf("%w: %s at %s: %w", datadir.ErrNoSpace, part, path, err)
	}
	if strings.Contains(text, "unsupported version") { // of Badger's list of tables
		return &datadir.DamageError{Part: part, Path: path, Problem: "it cannot be read", Remedy: datadir.RemedyNewer, Err: fmt.Errorf("%w: %w", datadir.ErrNewer, err)}
	}
	if f, ok := errors.AsType[*datadir.FileError](err); ok {
		return &datadir.DamageError{Part: part, Path: f.Path, Problem: "it cannot be used", Remedy: remedy, Err: f.Err}
	}
	return &datadir.DamageError{Part: part, Path: path, Problem: "it does not open", Remedy: remedy, Err: err}
}
