package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/background"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
)

// Log is the Raft log with the votes, on Badger. What StoreLogs, DeleteRange
// and Set have returned for is on the disk.
type Log struct {
	cfg    Config
	layout datadir.Layout
	db     *badger.DB
	guard  *rollbackGuard

	write       sync.Mutex // held by whoever changes state, over the disk write too
	staged      uint64     // the commit index to go with the next entries
	buf         []byte     // of the entries that are being written
	failed      error      // the write that failed first; nothing is written after it
	closed      bool
	tailDeleted bool // the end was deleted, and nothing is in its place yet

	mu     sync.RWMutex // guards what readers see; never held over a disk write
	state  State
	recent *recent

	sweepMu sync.Mutex // held over one batch of deletions
	swept   uint64     // no key is left at or below it, but for live entries

	background background.Group
}

var _ LogStore = (*Log)(nil)

// OpenLog opens the log in a data directory, or begins one. It refuses a log
// that is not as it was written, by a *DamageError.
func Open(layout datadir.Layout, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("raft log: %w", err)
	}
	cfg = cfg.WithDefaults()
	mark, vouched, err := Prepare(layout)
	if err != nil {
		return nil, err
	}
	if err := disk.CheckFree(layout.Raft(), cfg.MinFree/2-badgerdb.UnlistedTableBytes(layout.Log())); err != nil {
		return nil, fmt.Errorf("opening the raft log: %w", err)
	}
	if err := verifyCopy(layout, mark, vouched, cfg); err != nil {
		return nil, err
	}
	db, err := badgerdb.Open(badgerdb.Options(layout.Log(), cfg.Logger).WithSyncWrites(true))
	if err != nil {
		return nil, badgerdb.OpenError("raft log", layout.Log(), datadir.RemedyRejoin, err)
	}
	l := &Log{cfg: cfg, layout: layout, db: db, recent: newRecent(cfg.CacheEntries, cfg.CacheBytes)}
	if err := l.load(mark, vouched); err != nil {
		return nil, errors.Join(err, badgerdb.Close(db))
	}
	l.background.Start(l.sweepInBackground, l.syncInBackground)
	l.background.Wake()
	return l, nil
}

// prepareLog looks at what there is before Badger mends it. vouched means that
// the mark says nothing, by an operator's will.
func Prepare(layout datadir.Layout) (mark GuardMark, vouched bool, err error) {
	_, err = os.Stat(layout.Log())
	begun := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return mark, false, err
	}
	mark, ok, err := ReadGuard(layout.RollbackGuard())
	missing := errors.Is(err, fs.ErrNotExist)
	if begun && badgerdb.ManifestMissing(layout.Log()) {
		return mark, false, Damage(layout, "its MANIFEST is missing", nil)
	}
	switch {
	case missing && begun:
		return mark, false, &datadir.DamageError{Part: "side file of the raft log", Path: layout.RollbackGuard(), Problem: "it is missing", Remedy: datadir.RemedyGuard}
	case errors.Is(err, errGuard):
		return mark, false, &datadir.DamageError{Part: "side file of the raft log", Path: layout.RollbackGuard(), Problem: "it is damaged", Remedy: datadir.RemedyGuard, Err: err}
	case err != nil && !missing:
		return mark, false, err
	case !begun && mark.Seq > 0:
		return mark, false, &datadir.DamageError{Part: "raft log", Path: layout.Log(), Problem: "it is missing, and once held entries up to " + fmt.Sprint(mark.Last), Remedy: datadir.RemedyRejoin}
	case begun:
		return mark, !ok, nil
	}
	// The id is written once there is a log.
	switch id, err := datadir.ReadServerID(layout); {
	case err != nil:
		return mark, false, err
	case id != "":
		return mark, false, &datadir.DamageError{Part: "raft log", Path: layout.Raft(), Problem: "it is missing, and this is the directory of server " + id, Remedy: datadir.RemedyRejoin}
	}
	// The side file comes first: a log without one is then always damage.
	if err := os.MkdirAll(layout.Raft(), 0o700); err != nil {
		return mark, false, err
	}
	if err := createGuard(layout.RollbackGuard(), GuardMark{}); err != nil {
		return mark, false, err
	}
	return mark, false, atomicfile.SyncDir(layout.Dir)
}

// tryLog looks at a log in a copy: Badger mends what it opens, and what is
// refused should be left as it was found.
func verifyCopy(layout datadir.Layout, mark GuardMark, vouched bool, cfg Config) error {
	if _, err := os.Stat(layout.Log()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return badgerdb.WithCopy(layout.Log(), func(db *badger.DB) error {
		v, err := Verify(db, mark, vouched, cfg.VerifyLast)
		return v.Err(layout, err)
	}, func(err error) error {
		return badgerdb.OpenError("raft log", layout.Log(), datadir.RemedyRejoin, err)
	})
}

// load takes over the state on the disk once it is found to be whole.
func (l *Log) load(mark GuardMark, vouched bool) error {
	v, err := Verify(l.db, mark, vouched, l.cfg.VerifyLast)
	if err := v.Err(l.layout, err); err != nil {
		return err
	}
	if len(v.Orphans) > 0 {
		if err := l.deleteKeys(v.Orphans); err != nil {
			return l.damage("left-overs cannot be deleted", err)
		}
	}
	l.state, l.swept, l.staged = v.State, v.swept, v.State.Commit
	if vouched {
		l.cfg.Logger.Warn("the raft log is taken as it stands, as the operator asked", "last_index", v.State.Last)
		if err := createGuard(l.layout.RollbackGuard(), l.guardMark()); err != nil {
			return err
		}
	}
	l.guard, err = openGuard(l.layout.RollbackGuard())
	return err
}

func (l *Log) guardMark() GuardMark { return GuardMark{l.state.Seq, l.state.Last, l.state.LastTerm} }

func (l *Log) damage(what string, err error) error {
	return Damage(l.layout, what, err)
}

func Damage(layout datadir.Layout, what string, err error) error {
	if errors.Is(err, datadir.ErrNewer) {
		return &datadir.DamageError{Part: "raft log", Path: layout.Log(), Problem: what, Remedy: datadir.RemedyNewer, Err: err}
	}
	return &datadir.DamageError{Part: "raft log", Path: layout.Log(), Problem: what, Remedy: datadir.RemedyRejoin, Err: err}
}

// FirstIndex is the index of the first entry; 0 when there is none.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.First, nil
}

// LastIndex is the index of the last entry; 0 when there is none.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.Last, nil
}

// Bounds is the first entry, 0 when there is none, and what was deleted last.
func (l *Log) Bounds() (first, floor uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.First, l.state.Floor
}

// IsMonotonic tells Raft that the log has no gaps.
func (l *Log) IsMonotonic() bool { return true }

// GetCommitIndex is the newest commit index that was stored with entries.
func (l *Log) GetCommitIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.Commit, nil
}

// GetLog reads the entry at index; raft.ErrLogNotFound where the log has none,
// whatever lies on the disk.
func (l *Log) GetLog(index uint64, into *raft.Log) error {
	l.mu.RLock()
	has, cached := l.state.Contains(index), l.recent.get(index)
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
	err := ReadEntry(l.db, index, into)
	if err == nil {
		return nil
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.state.Contains(index) {
		return raft.ErrLogNotFound // it was deleted meanwhile
	}
	return l.damage(fmt.Sprintf("entry %d cannot be read", index), err)
}

// readEntry reads and checks one entry.
func ReadEntry(db *badger.DB, index uint64, into *raft.Log) error {
	return badgerdb.View(db, func(txn *badger.Txn) error {
		b, err := badgerdb.Get(txn, indexKey(index))
		if err != nil {
			return err
		}
		if b == nil {
			return badgerdb.ErrMissing
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
	l.background.Stop()
	return errors.Join(badgerdb.Close(l.db), l.guard.close())
}

// Size is how many bytes the files take.
func (l *Log) Size() int64 { return disk.Usage(l.layout.Log()) }

// CheckSpace returns an ErrNoSpace if the disk has too little free space for entries.
func (l *Log) CheckSpace() error { return disk.CheckFree(l.layout.Raft(), l.cfg.MinFree) }

func (l *Log) logger() *slog.Logger { return l.cfg.Logger }
