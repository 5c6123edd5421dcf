//go:build unix

package datadir

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A process that is being started has copies of the files of its parent for a moment. They do
// not hold a released lock.
func TestLock_ReleaseIgnoresCopiesOfTheFile(t *testing.T) {
	l := Layout{Dir: t.TempDir()}
	first, err := AcquireLock(l)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.Dup(int(first.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(copied) }()
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := AcquireLock(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Release(); err != nil {
		t.Error(err)
	}
}
