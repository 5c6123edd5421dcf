package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// runDir is the directory of one host, which holds a lock on it. The parent directory is
// locked while hosts are added and dead ones are removed, so that a directory that is about
// to be locked is not taken for a dead one. Directories are locked rather than files in
// them, because that also prevents systemd from removing them from /tmp.
type runDir struct {
	path string
	lock *os.File
	once sync.Once
}

const (
	hostPrefix = "h-"
	// maxSocketSuffix is the longest suffix that go-plugin and the number of a process add
	// to the path of a host's directory.
	maxSocketSuffix = "/1234567890/plugin1234567890"
)

// newRunDir creates the directory of a host in base.
func newRunDir(base string) (*runDir, error) {
	if base == "" {
		base = filepath.Join(os.TempDir(), "cede-"+strconv.Itoa(os.Getuid()))
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	if err := ensurePrivate(base); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if n := len(base) + len("/h-1234567890") + len(maxSocketSuffix); n > maxSocketPath {
		return nil, fmt.Errorf("run directory: %s is %d characters too long for a socket path; configure a shorter one", base, n-maxSocketPath)
	}
	gate, err := lockDir(base, true)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	defer unlock(gate)
	removeStale(base)
	path, err := os.MkdirTemp(base, hostPrefix)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	lock, err := lockDir(path, true)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run directory: %w", err), os.RemoveAll(path))
	}
	return &runDir{path: path, lock: lock}, nil
}

// ensurePrivate creates a directory that no other user can enter, or returns an error. Its
// files are executed, and a user with access to a socket could talk to the policy.
func ensurePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	at, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	const others = 0o077
	switch {
	case !at.IsDir():
		return fmt.Errorf("%s is not a directory; configure another one", dir)
	case !ownedByUs(at):
		return fmt.Errorf("%s belongs to another user, who could replace the executables in it; configure another one", dir)
	case at.Mode().Perm()&others != 0 && hasModes:
		return fmt.Errorf("%s is accessible to other users, and its files are executed; run chmod 700 %s", dir, dir)
	}
	return nil
}

// removeStale removes the directories of dead hosts. If that fails, the next host tries
// again.
func removeStale(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), hostPrefix) {
			removeIfDead(filepath.Join(base, e.Name()))
		}
	}
}

// removeIfDead removes the directory of a host unless it is locked.
func removeIfDead(dir string) {
	lock, err := lockDir(dir, false)
	if err != nil {
		return // the host is alive, or the directory cannot be read
	}
	defer unlock(lock)
	_ = os.RemoveAll(dir)
}

// remove deletes the directory. It may be called again.
func (d *runDir) remove() (err error) {
	d.once.Do(func() {
		err = os.RemoveAll(d.path)
		unlock(d.lock)
	})
	return err
}
