//go:build unix

package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeBytes returns the number of bytes available to this user on the disk under dir.
// The reserve of the superuser does not count.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}

// AllocatedBytes returns the disk space of a file in bytes, holes excluded.
func AllocatedBytes(info os.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(s.Blocks) * 512 //nolint:unconvert // the types differ between systems
	}
	return info.Size()
}
