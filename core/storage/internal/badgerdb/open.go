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

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
)

// Options returns options that keep Badger small. Values are stored in the tree rather than
// in the value log, so that deletions need no value log garbage collection.
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
		// Badger's lock would outlive its database while another process is being started.
		WithBypassLockGuard(datadir.Locks).
		// Verifying whole tables when they are opened would be stricter, but a bad block
		// then ends the process in a goroutine of Badger.
		WithChecksumVerificationMode(options.OnBlockRead).
		WithLogger(logAdapter{log.With("part", filepath.Base(dir))})
}

// memTableBytes bounds a transaction to about 2.4 MB and what Badger replays after a crash.
const memTableBytes = 16 << 20

// Open opens a Badger directory. It returns an error, and does not open the directory, if
// the index of one of its tables is damaged.
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

// removeEmptyFiles deletes journals and value log files of zero bytes. A process leaves one
// if it is killed between creating the file and extending it, and Badger then refuses the
// directory. If such a file held data once, the later checks find the missing entries.
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

// closeBytes is the free disk space that Close requires: the tables of two memtables.
const closeBytes = 2 * memTableBytes

// Close closes db, which may be nil. It returns datadir.ErrNoSpace and leaves db open if the
// disk is too full for the tables that Badger writes when it closes: it writes them through
// mapped files, and a full disk would end the process with a signal. What was synced is in
// the journal, which the next Open reads.
func Close(db *badger.DB) error {
	if db == nil {
		return nil
	}
	if err := disk.CheckFree(db.Opts().Dir, closeBytes); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return Guard(db.Close)
}

// Guard calls f, which calls Badger, and returns its panics as errors. A read fault on
// a memory-mapped file that was truncated is one of them. It must be called on the
// goroutine that reads: a fault on another one is not recovered.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("badger panicked: %v", r)
		}
	}()
	return f()
}

// logAdapter forwards Badger's log lines. Its lines vary, so they are an attribute of a
// constant message.
type logAdapter struct{ log *slog.Logger }

var _ badger.Logger = logAdapter{}

func (l logAdapter) Errorf(format string, args ...any)   { l.print(slog.LevelError, format, args) }
func (l logAdapter) Warningf(format string, args ...any) { l.print(slog.LevelWarn, format, args) }

// Infof logs at debug level: Badger's information only helps to debug Badger itself.
func (l logAdapter) Infof(format string, args ...any)  { l.print(slog.LevelDebug, format, args) }
func (l logAdapter) Debugf(format string, args ...any) { l.print(slog.LevelDebug-4, format, args) }

func (l logAdapter) print(level slog.Level, format string, args []any) {
	if ctx := context.Background(); l.log.Enabled(ctx, level) {
		l.log.LogAttrs(ctx, level, "badger", slog.String("detail", strings.TrimSpace(fmt.Sprintf(format, args...))))
	}
}
