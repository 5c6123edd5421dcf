package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisk is a disk of memory at a folder, which can be filled.
type smallDisk struct {
	t  *testing.T
	at string
}

// mountSmall mounts one of 400 MB, or skips the test.
func mountSmall(t *testing.T, at string) *smallDisk {
	t.Helper()
	asRoot(t)
	do(t, os.MkdirAll(at, 0o700))
	if err := syscall.Mount("cede-test", at, "tmpfs", 0, "size=400m"); err != nil {
		t.Skipf("a small disk is mounted for this, and mounting is not allowed here (%v): run the tests where it is", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(at, 2 /* detach */); err != nil {
			t.Error(err)
		}
	})
	return &smallDisk{t: t, at: at}
}

func (d *smallDisk) filler() string { return filepath.Join(d.at, "filler") }

// leave fills the disk up to so many megabytes.
func (d *smallDisk) leave(megabytes int) {
	d.t.Helper()
	var stat syscall.Statfs_t
	do(d.t, syscall.Statfs(d.at, &stat))
	free := int(stat.Bavail * uint64(stat.Bsize) >> 20)
	do(d.t, os.WriteFile(d.filler(), make([]byte, max(free-megabytes, 0)<<20), 0o600))
}

// room takes away what fills it.
func (d *smallDisk) room() {
	d.t.Helper()
	do(d.t, os.Remove(d.filler()))
}
