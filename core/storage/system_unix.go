//go:build unix

package storage

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var errHeld = errors.New("held by another process")

// lockFile takes an exclusive lock that ends when f is closed.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	return err
}

// freeBytes is what is left to this user on the disk under dir.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}

// blocks is what a file takes on the disk, holes left out.
func blocks(info os.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(s.Blocks) * 512 //nolint:unconvert // the types differ between systems
	}
	return info.Size()
}
