package badgerdb

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// engineOptions keeps Badger small. Values lie in the tree and not in the value
// log, so that deleting needs no collection of garbage there.
func Options(dir string, log *slog.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithDetectConflicts(false).
		WithNumVersionsToKeep(1).
		WithMemTableSize(memTableBytes).
		WithNumMemtables(2).
		WithValueLogFileSize(64 << 20).
		WithValueThreshold(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(8 << 20).
		WithNumCompactors(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(8).
		WithMetricsEnabled(false).
		// Checking whole tables as they are opened would be better, but a bad
		// block then ends the process in a goroutine of Badger's.
		WithChecksumVerificationMode(options.OnBlockRead).
		WithLogger(logAdapter{log.With("part", filepath.Base(dir))})
}

const memTableBytes = 16 << 20

// openEngine opens a Badger directory whose tables can be opened.
func Open(o badger.Options) (*badger.DB, error) {
	if err := removeEmptyFiles(o.Dir); err != nil {
		return nil, err
	}
	if problems := CheckTables(o.Dir, false); len(problems) > 0 {
		return nil, problems[0]
	}
	var db *badger.DB
	err := Guard(func() (err error) {
		db, err = badger.Open(o)
		return err
	})
	return db, err
}

// dropUnbegun deletes journals and value files without a byte. A process that is killed
// between making one and giving it its length leaves it so, and Badger refuses the
// directory for it. Whether one held something once is found by what is missing then.
func removeEmptyFiles(dir string) error {
	for _, pattern := range []string{"*.mem", "*.vlog"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Size() > 0 {
				continue
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeEngine closes db, which may be nil.
func Close(db *badger.DB) error {
	if db == nil {
		return nil
	}
	return Guard(db.Close)
}

// guard calls f, which calls Badger, and makes an error of its panics. Reading
// a mapped file whose end is gone is one of them.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("badger panicked: %v", r)
		}
	}()
	return f()
}

// engineLog hands on what Badger says.
type logAdapter struct{ log *slog.Logger }

var _ badger.Logger = logAdapter{}

func (l logAdapter) Errorf(format string, args ...any)   { l.print(slog.LevelError, format, args) }
func (l logAdapter) Warningf(format string, args ...any) { l.print(slog.LevelWarn, format, args) }

// What Badger calls information is for those who look for a fault in it.
func (l logAdapter) Infof(format string, args ...any)  { l.print(slog.LevelDebug, format, args) }
func (l logAdapter) Debugf(format string, args ...any) { l.print(slog.LevelDebug-4, format, args) }

func (l logAdapter) print(level slog.Level, format string, args []any) {
	if ctx := context.Background(); l.log.Enabled(ctx, level) {
		l.log.LogAttrs(ctx, level, "badger", slog.String("detail", strings.TrimSpace(fmt.Sprintf(format, args...))))
	}
}
