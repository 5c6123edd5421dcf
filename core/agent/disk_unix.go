//go:build unix

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock keeps other agents out of the directory, until the process ends at the
// latest.
func (d *disk) lock() (unlock func(), err error) {
	path := filepath.Join(d.dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: another agent uses this data directory: stop it, or give this one a data_dir of its own", d.dir)
	}
	return func() { _ = f.Close() }, nil
}
