//go:build unix

package datadir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Locks reports whether a Lock excludes other processes on this system.
const Locks = true

var errHeld = errors.New("held by another process")

// lockFile acquires an exclusive lock, which ends with the process. It returns errHeld if
// another process holds the lock.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	return err
}

// unlockFile releases the lock of f. Closing f does not suffice at once: a process that is being
// started holds a copy of each open file until it runs its program.
func unlockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
