package disk

import (
	"io/fs"
	"path/filepath"
)

// Usage returns the disk space of all files under dir in bytes. It counts allocated blocks,
// because Badger's preallocated files have larger sizes.
func Usage(dir string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // files may disappear meanwhile; unreadable ones are not counted
		}
		if info, err := d.Info(); err == nil {
			total += AllocatedBytes(info)
		}
		return nil
	})
	return total
}
