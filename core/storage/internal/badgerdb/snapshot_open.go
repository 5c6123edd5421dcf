package badgerdb

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/internal/disk"
)

// WithCopy opens a temporary copy of a Badger directory that is not in use, calls look
// with it, and deletes the copy. Opening repairs and deletes files, so the directory
// itself is never opened and stays as it is. Tables, which are immutable, are linked
// rather than copied. If the copy does not open, refused converts the error. The copy
// needs the space of the journals and the manifest in TMPDIR.
func WithCopy(dir string, look func(*badger.DB) error, refused func(error) error) (err error) {
	tmp, err := os.MkdirTemp("", "cede-check-")
	if err != nil {
		return fmt.Errorf("create temporary directory: %w; set TMPDIR to use another place", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	copied := filepath.Join(tmp, filepath.Base(dir))
	if err := copyDirectory(dir, copied); err != nil {
		return err
	}
	// Without compactors and with a high stall limit the copy is not rewritten while it is
	// read.
	o := Options(copied, slog.New(slog.DiscardHandler)).WithNumCompactors(0).WithNumLevelZeroTablesStall(1000)
	db, err := Open(o)
	if err != nil {
		return refused(err)
	}
	defer func() { err = errors.Join(err, Close(db)) }()
	return look(db)
}

// copyDirectory copies the regular files of a Badger directory, except lock files and
// half-written manifests. The directory must not change meanwhile: the caller holds its
// lock.
func copyDirectory(from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		old, now := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case !e.Type().IsRegular() || e.Name() == badger.ManifestFilename+"-REWRITE" || e.Name() == "LOCK":
		case strings.HasSuffix(e.Name(), ".sst") && writable(old):
			err = os.Symlink(old, now)
		default:
			err = disk.CopySparse(old, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writable reports whether Badger could map the file for writing. Badger opens even
// immutable tables read-write, so a read-only table is copied instead of linked.
func writable(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	return err == nil && f.Close() == nil
}
