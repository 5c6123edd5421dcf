package kvstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
	"github.com/cede-scheduler/cede/core/storage/internal/rollback"
)

// A Store is the second Badger directory of a server, shared by modules and history. Writes
// reach the kernel when they return, so they survive a killed process. They reach the disk
// if the caller requests durability.
type Store struct {
	Layout  datadir.Layout
	DB      *badger.DB
	Logger  *slog.Logger
	minFree int64 // MinFree of the log; writes here stop earlier, so that the log keeps its reserve

	Mu     sync.Mutex // held over each transaction
	seq    uint64     // number of the last transaction
	guard  *rollback.Guard
	failed error // first failed write; all later writes are rejected
	closed bool

	closing chan struct{} // closed by Close
	checks  sync.WaitGroup
}

// Key prefixes, one for each kind of record. They are part of the on-disk format.
const (
	BlobPrefix    = 'd' // followed by a digest: a finished module
	ChunkPrefix   = 'c' // followed by digest and offset: a chunk
	RecordPrefix  = 'h' // followed by position and topic: a record
	TopicPrefix   = 't' // followed by topic with its length, and position: topic index
	SegmentPrefix = 'g' // followed by a number: a segment
)

// HistoryKey holds the watermark of the history and the progress of its deletion.
var HistoryKey = []byte{'m'}

// sequenceKey holds the number of the last transaction.
var sequenceKey = []byte{'q'}

// Open opens the store, or creates it. minFree is the reserve of the Raft log.
func Open(layout datadir.Layout, minFree int64, log *slog.Logger) (*Store, error) {
	o := badgerdb.Options(layout.Store(), log).WithSyncWrites(false)
	// Badger would create a new manifest and delete all tables.
	if badgerdb.ManifestMissing(layout.Store()) {
		return nil, Damage(layout, "MANIFEST is missing", nil)
	}
	db, err := badgerdb.Open(o)
	if err != nil {
		return nil, badgerdb.OpenError("policy modules and history", layout.Store(), datadir.RemedyStore, err)
	}
	s := &Store{Layout: layout, DB: db, Logger: log, minFree: minFree, closing: make(chan struct{})}
	if err := s.openGuard(); err != nil {
		return nil, errors.Join(err, badgerdb.Close(db))
	}
	// Reading all of the history would delay the start, and no decision depends on it.
	s.checks.Go(func() {
		badgerdb.CheckBlocks(layout.Store(), s.closing, func(err error) {
			log.Error("policy modules or history are damaged: parts cannot be read", "err", badgerdb.OpenError("policy modules and history", layout.Store(), datadir.RemedyStore, err))
		})
	})
	return s, nil
}

// openGuard compares the number of transactions with the guard, which it creates if it is
// missing or damaged. A loss is reported and not refused: the writes of the history are
// not synced, so a power failure may cause one, and modules have digests.
func (s *Store) openGuard() (err error) {
	if s.seq, err = Sequence(s.DB); err != nil {
		return s.Damage("cannot be read", err)
	}
	path := s.Layout.StoreGuard()
	mark, _, err := rollback.Read(path)
	switch {
	case errors.Is(err, rollback.ErrDamaged):
		s.Logger.Warn("progress of policy modules and history cannot be checked", "path", path, "err", err)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case mark.Seq > s.seq:
		s.Logger.Warn("policy modules and history have lost their most recent writes", "path", s.Layout.Store(), "lost", mark.Seq-s.seq, "writes", mark.Seq)
		s.seq = mark.Seq
	}
	if err := rollback.Create(path, rollback.Mark{Seq: s.seq}); err != nil {
		return err
	}
	s.guard, err = rollback.Open(path)
	return err
}

// Sequence returns the number of the last transaction, or 0 if an earlier release wrote
// all of them.
func Sequence(db *badger.DB) (seq uint64, err error) {
	err = badgerdb.View(db, func(txn *badger.Txn) error {
		b, err := badgerdb.Get(txn, sequenceKey)
		if err != nil || b == nil {
			return err
		}
		if b, err = badgerdb.Unseal(b); err == nil && len(b) == 8 {
			seq = binary.BigEndian.Uint64(b)
		}
		return err
	})
	return seq, err
}

// Update writes one transaction. If durable is set, it is on the disk when Update returns.
// The caller holds Mu: Badger's Sync reaches only the newest journal, so a concurrent
// transaction could start another journal between the write and its sync.
func (s *Store) Update(durable bool, fill func(*badger.Txn) error) error {
	return s.commit(durable, s.minFree/4*5, fill)
}

// Shrink is Update for deletions. It frees space and therefore needs less reserve. It
// is not synced: a deletion that a crash undoes is repeated.
func (s *Store) Shrink(fill func(*badger.Txn) error) error {
	return s.commit(false, s.minFree/2, fill)
}

// commit writes one transaction if at least free bytes remain on the disk. A failed
// write rejects all later ones, for the reason given at raftlog's commit. An error of
// fill leaves the store as it was.
func (s *Store) commit(durable bool, free int64, fill func(*badger.Txn) error) error {
	switch {
	case s.closed:
		return datadir.ErrClosed
	case s.failed != nil:
		return fmt.Errorf("%w: %w", datadir.ErrFailed, s.failed)
	}
	if err := disk.CheckFree(s.Layout.Store(), free); err != nil {
		return err
	}
	// Only errors after the commit started make the contents of the disk uncertain.
	begun := false
	err := badgerdb.Guard(func() error {
		txn := s.DB.NewTransaction(true)
		defer txn.Discard()
		if err := fill(txn); err != nil {
			return err
		}
		if err := txn.Set(sequenceKey, badgerdb.Seal(binary.BigEndian.AppendUint64(nil, s.seq+1))); err != nil {
			return err
		}
		begun = true
		if err := txn.Commit(); err != nil {
			return err
		}
		s.seq++
		if err := s.guard.Record(rollback.Mark{Seq: s.seq}); err != nil || !durable {
			return err
		}
		return s.DB.Sync()
	})
	if err != nil && begun {
		s.failed = err
		s.Logger.Error("failed to write policy modules and history; further writes are rejected", "err", err)
	}
	return err
}

// Sync writes everything that was committed to the disk. The caller holds Mu.
func (s *Store) Sync() error {
	if s.closed {
		return datadir.ErrClosed
	}
	return badgerdb.Guard(s.DB.Sync)
}

// Damage returns a *DamageError for a part of this store.
func (s *Store) Damage(what string, err error) error { return Damage(s.Layout, what, err) }

// Damage returns a *DamageError for the store of a directory.
func Damage(layout datadir.Layout, what string, err error) error {
	return &datadir.DamageError{Part: "policy modules and history", Path: layout.Store(), Problem: what, Remedy: datadir.RemedyStore, Err: err}
}

// Close syncs and closes the store. It may be called again.
func (s *Store) Close() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.closing)
	s.checks.Wait()
	return errors.Join(badgerdb.Guard(s.DB.Sync), badgerdb.Close(s.DB), s.guard.Close())
}
