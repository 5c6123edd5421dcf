package disk

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// checkFree refuses to begin a write on a disk that is nearly full.
func CheckFree(dir string, least int64) error {
	if least < 0 {
		return nil
	}
	free, err := freeBytes(dir)
	if err != nil {
		return err
	}
	if free < uint64(least) {
		return fmt.Errorf("%w: %d MiB are left under %s, and writing needs %d MiB; make room", datadir.ErrNoSpace, free>>20, dir, least>>20)
	}
	return nil
}
