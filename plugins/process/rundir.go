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

// runDir is the folder of one host, which holds a lock on it. The folder above
// is locked while hosts come and dead ones are removed, so that nobody takes a
// folder for dead that is only about to be locked. Folders are locked, and not
// files in them, because that also keeps systemd from clearing them out of /tmp.
type runDir struct {
	path string
	lock *os.File
	once sync.Once
}

const (
	hostPrefix = "h-"
	// maxSocketSuffix is the longest that go-plugin and the number of a process add to
	// the path of a host's folder.
	maxSocketSuffix = "/1234567890/plugin1234567890"
)

// newRunDir makes the folder of a host beneath base.
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
		return nil, fmt.Errorf("run directory: %s is too long by %d characters for the path of a socket; name a shorter one", base, n-maxSocketPath)
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

// ensurePrivate makes sure of a folder that nobody else can enter: what lies there is
// executed, and who can reach a socket can try to speak to what is behind it.
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
		return fmt.Errorf("%s is no folder; name another", dir)
	case !ownedByUs(at):
		return fmt.Errorf("%s belongs to somebody else, who could exchange what is executed there; name another", dir)
	case at.Mode().Perm()&others != 0 && hasModes:
		return fmt.Errorf("%s can be entered by others, and what lies there is executed; run chmod 700 %s", dir, dir)
	}
	return nil
}

// removeStale removes the folders of hosts that are dead. What cannot be removed is
// left to the next one: it harms nobody.
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

// removeIfDead removes a host's folder if nobody holds its lock.
func removeIfDead(dir string) {
	lock, err := lockDir(dir, false)
	if err != nil {
		return // the host lives, or the folder cannot be read
	}
	defer unlock(lock)
	_ = os.RemoveAll(dir)
}

// remove gives the folder up. It may be called again.
func (d *runDir) remove() (err error) {
	d.once.Do(func() {
		err = os.RemoveAll(d.path)
		unlock(d.lock)
	})
	return err
}
