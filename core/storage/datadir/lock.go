package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A Lock admits one process to a data directory. The file remains after Release; the lock
// on it ends with the process, even if the process is killed.
type Lock struct{ file *os.File }

// AcquireLock locks the directory for writing and stores the process ID in the lock
// file. It returns ErrLocked if another process holds the lock. The lock is on the open
// file and not on its existence, so a file that a killed process left behind does not
// prevent a start.
func AcquireLock(l Layout) (*Lock, error) {
	f, err := os.OpenFile(l.Lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(inUse(l, f, err), f.Close())
	}
	number := strconv.Itoa(os.Getpid()) + "\n"
	if err := errors.Join(f.Truncate(0), writeAt(f, number)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", l.Lock(), err), f.Close())
	}
	return &Lock{f}, nil
}

// AcquireReadLock locks the directory without changing the lock file, for callers that only
// read. It returns nil, nil if the file does not exist, since no process can hold the lock
// then.
func AcquireReadLock(l Layout) (*Lock, error) {
	f, err := os.Open(l.Lock())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(inUse(l, f, err), f.Close())
	}
	return &Lock{f}, nil
}

// writeAt writes text at the start of a file.
func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// inUse returns the error for a lock that could not be acquired. If another process
// holds it, the error contains its process ID. The file may still be empty, because its
// holder writes the process ID after it has locked the file.
func inUse(l Layout, f *os.File, err error) error {
	if !errors.Is(err, errHeld) {
		return fmt.Errorf("lock %s: %w", l.Lock(), err)
	}
	by := "another process"
	if text, err := io.ReadAll(io.LimitReader(f, 32)); err == nil && len(text) > 0 {
		by = "process " + strings.TrimSpace(string(text))
	}
	return fmt.Errorf("%w: %s has locked %s; stop that process, or give each server its own directory", ErrLocked, by, l.Dir)
}

// Release releases the lock. It does nothing on a nil lock.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return errors.Join(unlockFile(l.file), l.file.Close())
}
