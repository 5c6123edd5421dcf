package badgerdb

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// OpenError classifies an error of Open. It returns an error that wraps ErrLocked or
// ErrNoSpace if another process or the disk is the reason, a plain error for missing
// permissions, and otherwise a *DamageError with the remedy.
func OpenError(part, path, remedy string, err error) error {
	// Badger returns no typed errors for these cases.
	text := err.Error()
	switch {
	case strings.Contains(text, "Cannot acquire directory lock"):
		return fmt.Errorf("%w: another process has opened %s", datadir.ErrLocked, path)
	case strings.Contains(text, "permission denied"), strings.Contains(text, "read-only file system"):
		return fmt.Errorf("%s at %s: %w", part, path, err)
	case strings.Contains(text, "no space left"):
		return fmt.Errorf("%w: %s at %s: %w", datadir.ErrNoSpace, part, path, err)
	}
	if strings.Contains(text, "unsupported version") { // of the manifest
		return &datadir.DamageError{Part: part, Path: path, Problem: "unsupported format", Remedy: datadir.RemedyNewer, Err: fmt.Errorf("%w: %w", datadir.ErrNewer, err)}
	}
	if f, ok := errors.AsType[*datadir.FileError](err); ok { // its directory may be a temporary copy
		return &datadir.DamageError{Part: part, Path: filepath.Join(path, filepath.Base(f.Path)), Problem: "file is damaged", Remedy: remedy, Err: f.Err}
	}
	if errors.Is(err, badger.ErrEncryptionKeyMismatch) || strings.Contains(text, "sanity text") || strings.Contains(text, "key registry") {
		path = filepath.Join(path, badger.KeyRegistryFileName)
	}
	return &datadir.DamageError{Part: part, Path: path, Problem: "cannot open it", Remedy: remedy, Err: err}
}
