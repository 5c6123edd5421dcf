// Package wholefile owns one thing: writing a small file so that after a crash, or
// a loss of power, all of it is there or what was there before. Whoever keeps an
// identity, a secret or a record of what runs writes it so.
//
// Files of different paths may be written concurrently; one path by one at a time.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file beside the one that there is, and puts it in its place once it
// is on the disk. When it returns, the name is there, too.
func Write(path string, b []byte, mode fs.FileMode) error {
	beside := path + ".new"
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder has the names in a folder on the disk: without it, a file or folder that
// was made or renamed there may be gone after a loss of power.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
