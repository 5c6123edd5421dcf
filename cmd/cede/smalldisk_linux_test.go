package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A smallDisk is a tmpfs that can be filled.
type smallDisk struct {
	t          *testing.T
	mountPoint string
}

// mountSmall mounts a smallDisk of 400 MB. It skips the test if mounting is not possible.
func mountSmall(t *testing.T, mountPoint string) *smallDisk {
	t.Helper()
	requireRoot(t)
	must(t, os.MkdirAll(mountPoint, 0o700))
	if err := syscall.Mount("cede-test", mountPoint, "tmpfs", 0, "size=400m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mountPoint, 2 /* detach */); err != nil {
			t.Error(err)
		}
	})
	return &smallDisk{t: t, mountPoint: mountPoint}
}

func (d *smallDisk) filler() string { return filepath.Join(d.mountPoint, "filler") }

// votesOnly is a number of free megabytes that is too small for log entries, and sufficient
// for votes and for what a server writes besides them. Below 128 MB a server exits when it has
// to vote, which it may at any time.
const votesOnly = 200

// fillExcept fills the disk until only the given number of megabytes is free.
func (d *smallDisk) fillExcept(megabytes int) {
	d.t.Helper()
	var stat syscall.Statfs_t
	must(d.t, syscall.Statfs(d.mountPoint, &stat))
	free := int(stat.Bavail * uint64(stat.Bsize) >> 20)
	must(d.t, os.WriteFile(d.filler(), make([]byte, max(free-megabytes, 0)<<20), 0o600))
}

// freeSpace removes the data that fillExcept wrote.
func (d *smallDisk) freeSpace() {
	d.t.Helper()
	must(d.t, os.Remove(d.filler()))
}
