// Package atomicfile owns one operation: replacing a small file so that after a crash
// or a power failure it holds either all of the new content or all of the old. Identity
// files, secrets and lease records are written this way.
//
// Libraries that do this (renameio, natefinch/atomic) do not sync the directory after
// the rename, or do not sync at all, so a power failure may undo a write that has
// returned. Callers rely on that second sync, and the whole operation is short.
//
// Different paths may be written concurrently; callers serialize the writes of one path.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path with b. It writes and syncs a temporary file next to
// it, renames that, and syncs the directory, so that content and name are durable when
// it returns. If it returns an error, the file has its old or its new content.
func Write(path string, b []byte, mode fs.FileMode) error {
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable. Without it, a file that was created
// or renamed there may be missing after a power failure.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
