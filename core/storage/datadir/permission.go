package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// ExplainPermission adds the remedy to err if the system denies this process access to a
// path in dir. Other errors are returned unchanged.
func ExplainPermission(dir string, err error) error {
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok || !strings.HasPrefix(p.Path, dir) {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; change the owner of %s and its contents to the server's user, ID %d (chown -R)", err, dir, os.Geteuid())
	// Linux remounts a file system read-only after an input/output error.
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; the system remounted the disk read-only after an error: check its log and the disk, then mount it writable", err)
	}
	return err
}
