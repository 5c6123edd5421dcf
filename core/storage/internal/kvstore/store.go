package kvstore

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
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
	failed error      // first failed write; all later writes are rejected
	closed bool
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

// Open opens the store, or creates it. minFree is the reserve of the Raft log.
func Open(layout datadir.Layout, minFree int64, log *slog.Logger) (*Store, error) {
	o := badgerdb.Options(layout.Store(), log).WithSyncWrites(false)
	db, err := badgerdb.Open(o)
	if err != nil {
		return nil, badgerdb.OpenError("policy modules and history", layout.Store(), datadir.RemedyStore, err)
	}
	return &Store{Layout: layout, DB: db, Logger: log, minFree: minFree}, nil
}

// Update writes one transaction. If durable is set, it is on the disk when Update returns.
// The caller holds Mu: Badger's Sync reaches only the newest journal, so a concurrent
// transaction could start another journal between the write and its sync.
func (s *Store) Update(durable bool, fill func(*badger.Txn) error) error {
	return s.commit(durable, s.minFree/4*5, fill)
}

// Shrink is Update for deletions. It frees space and therefore needs less reserve.
func (s *Store) Shrink(fill func(*badger.Txn) error) error {
	return s.commit(false, s.minFree/2, fill)
}

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
		begun = true
		if err := txn.Commit(); err != nil || !durable {
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
func (s *Store) Damage(what string, err error) error {
	return &datadir.DamageError{Part: "policy modules and history", Path: s.Layout.Store(), Problem: what, Remedy: datadir.RemedyStore, Err: err}
}

// Close syncs and closes the store. It may be called again.
func (s *Store) Close() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(badgerdb.Guard(s.DB.Sync), badgerdb.Close(s.DB))
}
