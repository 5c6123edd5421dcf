package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// dirLock is held on a data directory by the one process that may write to it.
// The file stays; the lock on it ends with the process, however that ends.
type Lock struct{ file *os.File }

// lockDir takes the lock and leaves the process's number for whoever asks.
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

// borrowLock takes the lock without a trace, for who only reads. Where the file
// is missing nobody holds it.
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

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// inUse tells who holds the lock.
func inUse(l Layout, f *os.File, err error) error {
	if !errors.Is(err, errHeld) {
		return fmt.Errorf("locking %s: %w", l.Lock(), err)
	}
	by := "another process"
	if text, err := io.ReadAll(io.LimitReader(f, 32)); err == nil && len(text) > 0 {
		by = "process " + strings.TrimSpace(string(text))
	}
	return fmt.Errorf("%w: %s has locked %s; stop it, or give each server a directory of its own", ErrLocked, by, l.Dir)
}

// Release lets go of the directory. A nil lock is none.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
