package disk

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// CheckFree returns ErrNoSpace if fewer than least bytes are free on the disk under dir. A
// negative least disables the check. Badger writes through mapped files, so a full disk
// would end the process with a signal; writes must be refused before that.
func CheckFree(dir string, least int64) error {
	if least < 0 {
		return nil
	}
	free, err := freeBytes(dir)
	if err != nil {
		return err
	}
	if free < uint64(least) {
		return fmt.Errorf("%w: %d MiB are free under %s, and writing requires %d MiB; free disk space", datadir.ErrNoSpace, free>>20, dir, least>>20)
	}
	return nil
}
