package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// explainAccess adds what to do where the system does not let this process at the
// directory.
func ExplainPermission(dir string, err error) error {
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok || !strings.HasPrefix(p.Path, dir) {
		return err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; give %s and all that is in it to the user that the server runs as, which is number %d (chown -R)", err, dir, os.Geteuid())
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; a disk that the system has made read-only had an error: look at its log, check the disk, and mount it for writing", err)
	}
	return err
}
