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

// shelf is the second Badger directory, which Blobs and History share. Writing
// reaches the kernel at once, so that it survives the end of the process, and
// the disk when somebody asks for it.
type Store struct {
	Layout  datadir.Layout
	DB      *badger.DB
	Logger  *slog.Logger
	minFree int64 // of the log; what is written here stops earlier

	Mu     sync.Mutex // held over each transaction
	failed error      // what ended all writing
	closed bool
}

// Its keys, one prefix for each kind.
const (
	BlobPrefix    = 'd' // and a digest
	ChunkPrefix   = 'c' // a digest, an offset
	RecordPrefix  = 'h' // a position, a topic
	TopicPrefix   = 't' // a topic with its length, a position
	SegmentPrefix = 'g' // a number
)

var HistoryKey = []byte{'m'}

func Open(layout datadir.Layout, minFree int64, log *slog.Logger) (*Store, error) {
	o := badgerdb.Options(layout.Store(), log).WithSyncWrites(false)
	db, err := badgerdb.Open(o)
	if err != nil {
		return nil, badgerdb.OpenError("policy modules and history", layout.Store(), datadir.RemedyStore, err)
	}
	return &Store{Layout: layout, DB: db, Logger: log, minFree: minFree}, nil
}

// Update writes one transaction; durable: what it wrote is on the disk when it
// returns. The caller holds write, for Badger syncs the newest of its journals
// alone, and a transaction of somebody else could begin another in between.
func (s *Store) Update(durable bool, fill func(*badger.Txn) error) error {
	return s.commit(durable, s.minFree/4*5, fill)
}

// Shrink is change for what deletes: it makes room, and so needs less.
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
		s.Logger.Error("policy modules and history could not be written, and take no more", "err", err)
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

func (s *Store) Damage(what string, err error) error {
	return &datadir.DamageError{Part: "policy modules and history", Path: s.Layout.Store(), Problem: what, Remedy: datadir.RemedyStore, Err: err}
}

func (s *Store) Close() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(badgerdb.Guard(s.DB.Sync), badgerdb.Close(s.DB))
}
