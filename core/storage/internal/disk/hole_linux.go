package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// nextData is where a file goes on after the hole at a place; the end of the
// file where nothing follows.
func NextData(f *os.File, at, size int64) int64 {
	to, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch {
	case err == unix.ENXIO:
		return size
	case err != nil:
		return at
	}
	return to
}
