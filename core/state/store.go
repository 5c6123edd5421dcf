package state

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// A Store publishes one snapshot after the other.
type Store struct {
	writer  sync.Mutex // held from Begin to Commit or Abort
	current atomic.Pointer[Snapshot]
	hub     hub
}

// New returns an empty store at index 0.
func New() *Store {
	s := &Store{}
	s.current.Store(&Snapshot{View: emptyView()})
	return s
}

// NewAt returns a store at the state of a snapshot. It and other stores that hold the
// snapshot continue independently.
func NewAt(sn *Snapshot) *Store {
	s := &Store{}
	s.current.Store(sn)
	return s
}

// Snapshot returns the newest committed state.
func (s *Store) Snapshot() *Snapshot { return s.current.Load() }

// Begin starts the transaction that creates the state of the given index, which
// must be greater than the last. It blocks until the previous transaction ends.
func (s *Store) Begin(index uint64) *Txn {
	s.writer.Lock()
	base := s.current.Load()
	if index <= base.index {
		s.writer.Unlock()
		panic(fmt.Sprintf("state: transaction at index %d after %d", index, base.index))
	}
	return &Txn{branch: branch{View: base.at(index), owner: cow.NewOwner(), records: s.hub.watchesKeys()}, store: s}
}

// BeginRestore starts a transaction on an empty state. Its commit replaces the
// whole state and closes every watch. Values retain the indexes they are written
// with.
func (s *Store) BeginRestore(index uint64) *Txn {
	s.writer.Lock()
	empty := emptyView()
	empty.restoredAt = index
	return &Txn{branch: branch{View: empty.at(index), owner: cow.NewOwner(), restores: true}, store: s}
}

// WaitIndex blocks until the state is at index or later.
func (s *Store) WaitIndex(ctx context.Context, index uint64) (*Snapshot, error) {
	for {
		if sn := s.Snapshot(); sn.index >= index {
			return sn, nil
		}
		reached, cancel := s.hub.waitIndex(index)
		if sn := s.Snapshot(); sn.index >= index {
			cancel()
			return sn, nil
		}
		select {
		case <-reached:
		case <-ctx.Done():
			cancel()
			return nil, fmt.Errorf("waiting for state index %d: %w", index, ctx.Err())
		}
	}
}

// Watch registers a watch of keys. To miss no change, register first, then read a
// snapshot, then wait: a change that the snapshot does not show closes the channel.
func (s *Store) Watch(keys ...Key) *Watch { return s.hub.watch(keys) }
