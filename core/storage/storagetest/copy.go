package storagetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/storage/internal/disk"
)

// CopyDir copies a directory and keeps the holes of its files. It creates the new directory
// unless it exists.
func CopyDir(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		there := to + strings.TrimPrefix(path, from)
		if d.IsDir() {
			return os.MkdirAll(there, 0o700)
		}
		return disk.CopySparse(path, there)
	})
	if err != nil {
		t.Fatal(err)
	}
}
