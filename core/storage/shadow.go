package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// crashed is whether a Badger directory was left without being closed: journals
// of tables in memory are then still there.
func crashed(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	return err == nil && len(found) > 0
}

// lostManifest is whether a Badger directory has tables or journals and no list
// of them. Badger would begin a new list, and delete the tables.
func lostManifest(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, badger.ManifestFilename)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	return err == nil && (len(tables) > 0 || crashed(dir))
}

// withShadow opens a copy of a Badger directory that nobody uses, shows it to
// look, and throws it away. Opening mends and deletes; the directory itself
// stays as it is. Tables, which are never written to, are linked rather than
// copied. refused turns the error of opening into the caller's.
func withShadow(dir string, look func(*badger.DB) error, refused func(error) error) (err error) {
	tmp, err := os.MkdirTemp("", "cede-check-")
	if err != nil {
		return fmt.Errorf("a folder for temporary files: %w; TMPDIR may name another place for them", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	copied := filepath.Join(tmp, filepath.Base(dir))
	if err := copyEngine(dir, copied); err != nil {
		return err
	}
	o := engineOptions(copied, discard(nil)).WithNumCompactors(0).WithNumLevelZeroTablesStall(1000)
	db, err := openEngine(o)
	if err != nil {
		return refused(err)
	}
	defer func() { err = errors.Join(err, closeEngine(db)) }()
	return look(db)
}

func copyEngine(from, to string) error {
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
			err = copySparse(old, now)
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

// copySparse copies a file and leaves its holes: journals are mostly hole.
func copySparse(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	block, zero := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := nextData(in, 0, info.Size()); at < info.Size(); at = nextData(in, at, info.Size()) {
		n, err := in.ReadAt(block, at)
		if n == 0 && err != nil {
			return err
		}
		if !bytes.Equal(block[:n], zero[:n]) {
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return out.Truncate(info.Size())
}
