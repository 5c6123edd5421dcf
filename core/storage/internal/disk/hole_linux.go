package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// NextData returns the offset of the next data at or after at, skipping holes, or size
// if no data follows. It changes the position of the file, which no caller uses. If the
// file system reports no holes, everything is data.
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
