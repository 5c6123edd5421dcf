package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"
)

// LogStore is what replication needs of a log. Log is one; whatever else passes
// storagetest.Conformance could take its place.
type LogStore interface {
	raft.LogStore
	raft.StableStore
	raft.CommitTrackingLogStore
	raft.MonotonicLogStore
}

// Log is the Raft log with the votes, on Badger. What StoreLogs, DeleteRange
// and Set have returned for is on the disk.
type Log struct {
	cfg    LogConfig
	layout Layout
	db     *badger.DB
	tail   *tailFile

	write  sync.Mutex // held by whoever changes state, over the disk write too
	staged uint64     // the commit index to go with the next entries
	buf    []byte     // of the entries that are being written
	failed error      // the write that failed first; nothing is written after it
	closed bool
	cut    bool // the end was deleted, and nothing is in its place yet

	mu     sync.RWMutex // guards what readers see; never held over a disk write
	state  logState
	recent *recent

	sweeping sync.Mutex // held over one batch of deletions
	swept    uint64     // no key is left at or below it, but for live entries

	chores chores
}

var _ LogStore = (*Log)(nil)

// OpenLog opens the log in a data directory, or begins one. It refuses a log
// that is not as it was written, by a *DamageError.
func OpenLog(layout Layout, cfg LogConfig) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("raft log: %w", err)
	}
	cfg = cfg.filled()
	mark, vouched, err := prepareLog(layout)
	if err != nil {
		return nil, err
	}
	if err := checkFree(layout.Raft(), cfg.MinFree/2-abandoned(layout.Log())); err != nil {
		return nil, fmt.Errorf("opening the raft log: %w", err)
	}
	if err := tryLog(layout, mark, vouched, cfg); err != nil {
		return nil, err
	}
	db, err := openEngine(engineOptions(layout.Log(), cfg.Logger).WithSyncWrites(true))
	if err != nil {
		return nil, engineError("raft log", layout.Log(), remedyRejoin, err)
	}
	l := &Log{cfg: cfg, layout: layout, db: db, recent: newRecent(cfg.CacheEntries, cfg.CacheBytes)}
	if err := l.load(mark, vouched); err != nil {
		return nil, errors.Join(err, closeEngine(db))
	}
	l.chores.start(l.sweepInBackground, l.syncInBackground)
	l.chores.kick()
	return l, nil
}

// prepareLog looks at what there is before Badger mends it. vouched means that
// the mark says nothing, by an operator's will.
func prepareLog(layout Layout) (mark tailMark, vouched bool, err error) {
	_, err = os.Stat(layout.Log())
	begun := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return mark, false, err
	}
	mark, ok, err := readTail(layout.Tail())
	missing := errors.Is(err, fs.ErrNotExist)
	if begun && lostManifest(layout.Log()) {
		return mark, false, logDamage(layout, "its MANIFEST is missing", nil)
	}
	switch {
	case missing && begun:
		return mark, false, &DamageError{Part: "side file of the raft log", Path: layout.Tail(), What: "it is missing", Remedy: remedyTail}
	case errors.Is(err, errTail):
		return mark, false, &DamageError{Part: "side file of the raft log", Path: layout.Tail(), What: "it is damaged", Remedy: remedyTail, Err: err}
	case err != nil && !missing:
		return mark, false, err
	case !begun && mark.seq > 0:
		return mark, false, &DamageError{Part: "raft log", Path: layout.Log(), What: "it is missing, and once held entries up to " + fmt.Sprint(mark.last), Remedy: remedyRejoin}
	case begun:
		return mark, !ok, nil
	}
	// The id is written once there is a log.
	switch id, err := readID(layout); {
	case err != nil:
		return mark, false, err
	case id != "":
		return mark, false, &DamageError{Part: "raft log", Path: layout.Raft(), What: "it is missing, and this is the directory of server " + id, Remedy: remedyRejoin}
	}
	// The side file comes first: a log without one is then always damage.
	if err := os.MkdirAll(layout.Raft(), 0o700); err != nil {
		return mark, false, err
	}
	if err := createTail(layout.Tail(), tailMark{}); err != nil {
		return mark, false, err
	}
	return mark, false, syncDir(layout.Dir)
}

// engineError is why a Badger directory does not open.
func engineError(part, path, remedy string, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "Cannot acquire directory lock"):
		return fmt.Errorf("%w: another process has opened %s", ErrLocked, path)
	case strings.Contains(text, "permission denied"), strings.Contains(text, "read-only file system"):
		return fmt.Errorf("%s at %s: %w", part, path, err)
	case strings.Contains(text, "no space left"):
		return fmt.Errorf("%w: %s at %s: %w", ErrNoSpace, part, path, err)
	}
	if strings.Contains(text, "unsupported version") { // of Badger's list of tables
		return &DamageError{Part: part, Path: path, What: "it cannot be read", Remedy: remedyNewer, Err: fmt.Errorf("%w: %w", ErrNewer, err)}
	}
	if f, ok := errors.AsType[*fileError](err); ok {
		return &DamageError{Part: part, Path: f.path, What: "it cannot be used", Remedy: remedy, Err: f.err}
	}
	return &DamageError{Part: part, Path: path, What: "it does not open", Remedy: remedy, Err: err}
}

// tryLog looks at a log in a copy: Badger mends what it opens, and what is
// refused should be left as it was found.
func tryLog(layout Layout, mark tailMark, vouched bool, cfg LogConfig) error {
	if _, err := os.Stat(layout.Log()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return withShadow(layout.Log(), func(db *badger.DB) error {
		v, err := verifyLog(db, mark, vouched, cfg.VerifyLast)
		return v.verdict(layout, err)
	}, func(err error) error {
		return engineError("raft log", layout.Log(), remedyRejoin, err)
	})
}

// load takes over the state on the disk once it is found to be whole.
func (l *Log) load(mark tailMark, vouched bool) error {
	v, err := verifyLog(l.db, mark, vouched, l.cfg.VerifyLast)
	if err := v.verdict(l.layout, err); err != nil {
		return err
	}
	if len(v.orphans) > 0 {
		if err := l.deleteKeys(v.orphans); err != nil {
			return l.damage("left-overs cannot be deleted", err)
		}
	}
	l.state, l.swept, l.staged = v.state, v.swept, v.state.commit
	if vouched {
		l.cfg.Logger.Warn("the raft log is taken as it stands, as the operator asked", "last_index", v.state.last)
		if err := createTail(l.layout.Tail(), l.mark()); err != nil {
			return err
		}
	}
	l.tail, err = openTail(l.layout.Tail())
	return err
}

func (l *Log) mark() tailMark { return tailMark{l.state.seq, l.state.last, l.state.lastTerm} }

func (l *Log) damage(what string, err error) error {
	return logDamage(l.layout, what, err)
}

func logDamage(layout Layout, what string, err error) error {
	if errors.Is(err, ErrNewer) {
		return &DamageError{Part: "raft log", Path: layout.Log(), What: what, Remedy: remedyNewer, Err: err}
	}
	return &DamageError{Part: "raft log", Path: layout.Log(), What: what, Remedy: remedyRejoin, Err: err}
}

// FirstIndex is the index of the first entry; 0 when there is none.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.first, nil
}

// LastIndex is the index of the last entry; 0 when there is none.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.last, nil
}

// reach is the first entry, 0 when there is none, and what was deleted last.
func (l *Log) reach() (first, floor uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.first, l.state.floor
}

// IsMonotonic tells Raft that the log has no gaps.
func (l *Log) IsMonotonic() bool { return true }

// GetCommitIndex is the newest commit index that was stored with entries.
func (l *Log) GetCommitIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.commit, nil
}

// GetLog reads the entry at index; raft.ErrLogNotFound where the log has none,
// whatever lies on the disk.
func (l *Log) GetLog(index uint64, into *raft.Log) error {
	l.mu.RLock()
	has, cached := l.state.has(index), l.recent.get(index)
	if cached != nil {
		*into = *cached
	}
	l.mu.RUnlock()
	if !has {
		return raft.ErrLogNotFound
	}
	if cached != nil {
		return nil
	}
	err := readEntry(l.db, index, into)
	if err == nil {
		return nil
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.state.has(index) {
		return raft.ErrLogNotFound // it was deleted meanwhile
	}
	return l.damage(fmt.Sprintf("entry %d cannot be read", index), err)
}

var errMissing = errors.New("it is missing")

// readEntry reads and checks one entry.
func readEntry(db *badger.DB, index uint64, into *raft.Log) error {
	return view(db, func(txn *badger.Txn) error {
		b, err := get(txn, indexKey(index))
		if err != nil {
			return err
		}
		if b == nil {
			return errMissing
		}
		return decodeEntry(b, index, into)
	})
}

// Close ends the background work and closes the files. Twice is once.
func (l *Log) Close() error {
	l.write.Lock()
	if l.closed {
		l.write.Unlock()
		return nil
	}
	l.closed = true
	l.write.Unlock()
	l.chores.stop()
	return errors.Join(closeEngine(l.db), l.tail.close())
}

// Size is how many bytes the files take.
func (l *Log) Size() int64 { return usage(l.layout.Log()) }

func (l *Log) logger() *slog.Logger { return l.cfg.Logger }
