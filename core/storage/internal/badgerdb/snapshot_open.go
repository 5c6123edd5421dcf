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

// withShadow opens a copy of a Badger directory that nobody uses, shows it to
// look, and throws it away. Opening mends and deletes; the directory itself
// stays as it is. Tables, which are never written to, are linked rather than
// copied. refused turns the error of opening into the caller's.
func WithCopy(dir string, look func(*badger.DB) error, refused func(error) error) (err error) {
	tmp, err := os.MkdirTemp("", "cede-check-")
	if err != nil {
		return fmt.Errorf("a folder for temporary files: %w; TMPDIR may name another place for them", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	copied := filepath.Join(tmp, filepath.Base(dir))
	if err := copyDirectory(dir, copied); err != nil {
		return err
	}
	o := Options(copied, slog.New(slog.DiscardHandler)).WithNumCompactors(0).WithNumLevelZeroTablesStall(1000)
	db, err := Open(o)
	if err != nil {
		return refused(err)
	}
	defer func() { err = errors.Join(err, Close(db)) }()
	return look(db)
}

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

// writable is whether Badger could map a file as it wants to.
func writable(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	return err == nil && f.Close() == nil
}
