//go:build unix

package agent

import "golang.org/x/sys/unix"

// freeDisk returns the number of free bytes on the disk of dir.
func freeDisk(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // their types differ between systems
}
