//go:build unix

package operator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// recordOwner returns a function that gives every file in a data directory to the owner
// that the directory has now. The command often runs as root, and a server that runs as
// another user could not open the files that it has written. Without the privilege, files
// belong to this user already.
func recordOwner(dir string) (restore func() error, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return func() error { return nil }, nil
	}
	return func() error {
		return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			return os.Lchown(path, int(owner.Uid), int(owner.Gid))
		})
	}, nil
}
