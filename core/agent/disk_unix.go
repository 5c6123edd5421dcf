//go:build unix

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock excludes other agents from the directory until the process ends.
func (d *disk) lock() (unlock func(), err error) {
	path := filepath.Join(d.dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: the data directory is used by another agent: stop it, or set another data_dir", d.dir)
	}
	return func() { _ = f.Close() }, nil
}
