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
	"github.com/cede-scheduler/cede/core/storage/internal/rollback"
)

// A Log is the Raft log and stable store on Badger. Whatever StoreLogs, DeleteRange and Set
// have returned for is on the disk.
type Log struct {
	cfg    Config
	layout datadir.Layout
	db     *badger.DB
	guard  *rollback.Guard

	write       sync.Mutex // serializes changes of state; held during disk writes
	staged      uint64     // commit index to store with the next entries
	buf         []byte     // encoding buffer of put
	failed      error      // first failed write; all later writes are rejected
	closed      bool
	tailDeleted bool // the tail was deleted and is not replaced yet

	mu     sync.RWMutex // guards state and recent for readers; never held during disk writes
	state  State
	recent *recent

	sweepMu sync.Mutex // held during one batch of deletions
	swept   uint64     // Invariant: no key at or below it, except of live entries

	background background.Group
}

var _ LogStore = (*Log)(nil)

// Open opens the log in a data directory, or creates it. It returns a
// *datadir.DamageError if the log is damaged or was rolled back. It returns ErrNoSpace
// if less than half of the reserve is free. Opening costs a copy of the journals and a
// read of the newest VerifyLast entries, twice.
func Open(layout datadir.Layout, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("raft log: %w", err)
	}
	cfg = cfg.WithDefaults()
	mark, vouched, err := Prepare(layout)
	if err != nil {
		return nil, err
	}
	// Tables of an interrupted compaction are deleted by opening, so their space counts as
	// free.
	if err := disk.CheckFree(layout.Raft(), cfg.MinFree/2-badgerdb.UnlistedTableBytes(layout.Log())); err != nil {
		return nil, fmt.Errorf("open raft log: %w", err)
	}
	// The log is verified twice: in a copy before Badger can change anything, and again
	// after Badger has opened, and possibly repaired, the real files.
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
	// Deletions that a crash or a shutdown interrupted continue at once.
	l.background.Start(l.sweepInBackground, l.syncInBackground)
	l.background.Wake()
	return l, nil
}

// Prepare checks the files of a log before Badger repairs them, and creates the directory
// of a new log. vouched is true if the operator has emptied the rollback guard, so that its
// mark must not be compared with the log.
func Prepare(layout datadir.Layout) (mark rollback.Mark, vouched bool, err error) {
	_, err = os.Stat(layout.Log())
	begun := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return mark, false, err
	}
	mark, ok, err := rollback.Read(layout.RollbackGuard())
	missing := errors.Is(err, fs.ErrNotExist)
	if begun && badgerdb.ManifestMissing(layout.Log()) {
		return mark, false, Damage(layout, "MANIFEST is missing", nil)
	}
	switch {
	case missing && begun:
		return mark, false, &datadir.DamageError{Part: "rollback guard", Path: layout.RollbackGuard(), Problem: "missing", Remedy: datadir.RemedyGuard}
	case errors.Is(err, rollback.ErrDamaged):
		return mark, false, &datadir.DamageError{Part: "rollback guard", Path: layout.RollbackGuard(), Problem: "damaged", Remedy: datadir.RemedyGuard, Err: err}
	case err != nil && !missing:
		return mark, false, err
	case !begun && mark.Seq > 0:
		return mark, false, &datadir.DamageError{Part: "raft log", Path: layout.Log(), Problem: "missing, although it held entries up to " + fmt.Sprint(mark.Last), Remedy: datadir.RemedyRejoin}
	case begun:
		return mark, !ok, nil
	}
	// The server ID is only written once there is a log, so an ID without a log is damage.
	switch id, err := datadir.ReadServerID(layout); {
	case err != nil:
		return mark, false, err
	case id.Value != "":
		return mark, false, &datadir.DamageError{Part: "raft log", Path: layout.Raft(), Problem: "missing, although this is the directory of server " + id.Value, Remedy: datadir.RemedyRejoin}
	}
	// The rollback guard is created first: a log without one is then always damage.
	if err := os.MkdirAll(layout.Raft(), 0o700); err != nil {
		return mark, false, err
	}
	if err := rollback.Create(layout.RollbackGuard(), rollback.Mark{}); err != nil {
		return mark, false, err
	}
	return mark, false, atomicfile.SyncDir(layout.Dir)
}

// verifyCopy verifies the log in a copy. Badger repairs what it opens, and a damaged log
// must stay as it was found.
func verifyCopy(layout datadir.Layout, mark rollback.Mark, vouched bool, cfg Config) error {
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

// load verifies the opened log and adopts its state. It runs before any goroutine is
// started, so it takes no locks.
func (l *Log) load(mark rollback.Mark, vouched bool) error {
	v, err := Verify(l.db, mark, vouched, l.cfg.VerifyLast)
	if err := v.Err(l.layout, err); err != nil {
		return err
	}
	if len(v.Orphans) > 0 {
		if err := l.deleteKeys(v.Orphans); err != nil {
			return l.damage("cannot delete remaining entries", err)
		}
	}
	l.state, l.swept, l.staged = v.State, v.swept, v.State.Commit
	if vouched {
		l.cfg.Logger.Warn("accepted the raft log as it is, as requested by the empty rollback guard", "path", l.layout.RollbackGuard(), "last_index", v.State.Last)
		if err := rollback.Create(l.layout.RollbackGuard(), l.guardMark()); err != nil {
			return err
		}
	}
	l.guard, err = rollback.Open(l.layout.RollbackGuard())
	return err
}

// guardMark returns the mark of the current state.
func (l *Log) guardMark() rollback.Mark {
	return rollback.Mark{Seq: l.state.Seq, Last: l.state.Last, LastTerm: l.state.LastTerm}
}

func (l *Log) damage(what string, err error) error {
	return Damage(l.layout, what, err)
}

// Damage returns a *datadir.DamageError for the raft log.
func Damage(layout datadir.Layout, what string, err error) error {
	if errors.Is(err, datadir.ErrNewer) {
		return &datadir.DamageError{Part: "raft log", Path: layout.Log(), Problem: what, Remedy: datadir.RemedyNewer, Err: err}
	}
	return &datadir.DamageError{Part: "raft log", Path: layout.Log(), Problem: what, Remedy: datadir.RemedyRejoin, Err: err}
}

// FirstIndex returns the index of the first entry, or 0 if the log is empty.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.First, nil
}

// LastIndex returns the index of the last entry, or 0 if the log is empty.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.Last, nil
}

// Bounds returns the index of the first entry, or 0 if the log is empty, and the highest
// deleted index.
func (l *Log) Bounds() (first, floor uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.First, l.state.Floor
}

// IsMonotonic returns true: the log never has gaps.
func (l *Log) IsMonotonic() bool { return true }

// GetCommitIndex returns the newest commit index that was stored with entries.
func (l *Log) GetCommitIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.state.Commit, nil
}

// GetLog reads the entry at index. It returns raft.ErrLogNotFound if the index is outside
// the log, even if a deleted entry is still on the disk.
func (l *Log) GetLog(index uint64, into *raft.Log) error {
	l.mu.RLock()
	// State and cache are read under one lock, so an entry is never returned after its
	// deletion.
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
		return raft.ErrLogNotFound // deleted during the read
	}
	return l.damage(fmt.Sprintf("cannot read entry %d", index), err)
}

// ReadEntry reads and verifies one entry. It returns badgerdb.ErrMissing if the entry
// does not exist, badgerdb.ErrChecksum if it is damaged, and datadir.ErrNewer if a
// later release wrote it.
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

// Close stops the background work and closes the files. It may be called again. It
// waits for writes in progress, and later ones return ErrClosed.
func (l *Log) Close() error {
	l.write.Lock()
	if l.closed {
		l.write.Unlock()
		return nil
	}
	l.closed = true
	l.write.Unlock()
	l.background.Stop()
	return errors.Join(badgerdb.Close(l.db), l.guard.Close())
}

// CheckSpace returns ErrNoSpace if the disk has too little free space for entries.
func (l *Log) CheckSpace() error { return disk.CheckFree(l.layout.Raft(), l.cfg.MinFree) }

func (l *Log) logger() *slog.Logger { return l.cfg.Logger }
