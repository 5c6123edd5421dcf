package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// shelf is the second Badger directory, which Blobs and History share. Writing
// reaches the kernel at once, so that it survives the end of the process, and
// the disk when somebody asks for it.
type shelf struct {
	layout  Layout
	db      *badger.DB
	log     *slog.Logger
	minFree int64 // of the log; what is written here stops earlier

	write  sync.Mutex // held over each transaction
	failed error      // what ended all writing
	closed bool
}

// Its keys, one prefix for each kind.
const (
	blobPrefix    = 'd' // and a digest
	chunkPrefix   = 'c' // a digest, an offset
	recordPrefix  = 'h' // a position, a topic
	topicPrefix   = 't' // a topic with its length, a position
	segmentPrefix = 'g' // a number
)

var historyKey = []byte{'m'}

func openShelf(layout Layout, minFree int64, log *slog.Logger) (*shelf, error) {
	o := engineOptions(layout.Store(), log).WithSyncWrites(false)
	db, err := openEngine(o)
	if err != nil {
		return nil, engineError("policy modules and history", layout.Store(), remedyStore, err)
	}
	return &shelf{layout: layout, db: db, log: log, minFree: minFree}, nil
}

// change writes one transaction; durable: what it wrote is on the disk when it
// returns. The caller holds write, for Badger syncs the newest of its journals
// alone, and a transaction of somebody else could begin another in between.
func (s *shelf) change(durable bool, fill func(*badger.Txn) error) error {
	return s.commit(durable, s.minFree/4*5, fill)
}

// shrink is change for what deletes: it makes room, and so needs less.
func (s *shelf) shrink(fill func(*badger.Txn) error) error {
	return s.commit(false, s.minFree/2, fill)
}

func (s *shelf) commit(durable bool, free int64, fill func(*badger.Txn) error) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.failed != nil:
		return fmt.Errorf("%w: %w", ErrFailed, s.failed)
	}
	if err := checkFree(s.layout.Store(), free); err != nil {
		return err
	}
	begun := false
	err := guard(func() error {
		txn := s.db.NewTransaction(true)
		defer txn.Discard()
		if err := fill(txn); err != nil {
			return err
		}
		begun = true
		if err := txn.Commit(); err != nil || !durable {
			return err
		}
		return s.db.Sync()
	})
	if err != nil && begun {
		s.failed = err
		s.log.Error("policy modules and history could not be written, and take no more", "err", err)
	}
	return err
}

func (s *shelf) damage(what string, err error) error {
	return &DamageError{Part: "policy modules and history", Path: s.layout.Store(), What: what, Remedy: remedyStore, Err: err}
}

func (s *shelf) close() error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(guard(s.db.Sync), closeEngine(s.db))
}
