package raftshim

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// A logStore is the log as Raft reads it. It reports no more commits than Raft
// can replay at startup (GetCommitIndex), and bridges the gap that a snapshot
// leaves behind.
//
// The gap: a follower can hold entries that no other server has, from a time when
// it led, or followed a leader, without a majority. If there are more of them
// than the current leader's log retains behind its snapshot, the follower gets
// the snapshot. Raft then empties the log, but continues to use the old last
// index: the leader's entries are compared with entries that no longer exist, and
// the snapshot is sent in a loop. In place of the missing entries, this store
// returns entries of term 0, which Raft replaces by the leader's.
//
// If the log starts right after a snapshot, the store also returns the snapshot's
// own last entry (index and term only), so that Raft can compare it with the
// entry that precedes the leader's. A leader never sends such an entry to others:
// it treats the one before as compacted, and sends the snapshot.
type logStore struct {
	raft.CommitTrackingLogStore
	snapshots      raft.SnapshotStore
	maxCommitIndex uint64

	// emptiedEnd is the last index of the log before it was emptied. 0 means that
	// Raft's last index is accurate.
	emptiedEnd atomic.Uint64
	// truncatePending is set while the disk refuses to empty the log. Nothing may
	// be read from the log until a retry succeeds.
	truncatePending atomic.Bool
}

var (
	_ raft.CommitTrackingLogStore = (*logStore)(nil)
	_ raft.MonotonicLogStore      = (*logStore)(nil)
)

// discardReplacedLog empties the log at startup if the newest snapshot replaced it
// and the server stopped before that was done. Raft would append to entries that
// no other server has, and send them to others if it becomes the leader.
func discardReplacedLog(logs raft.LogStore, newest *raft.SnapshotMeta) error {
	first, err := logs.FirstIndex()
	if err != nil {
		return fmt.Errorf("first index of the log: %w", err)
	}
	last, err := logs.LastIndex()
	if err != nil {
		return fmt.Errorf("last index of the log: %w", err)
	}
	if last == 0 || first > newest.Index {
		return nil // the log starts after the snapshot
	}
	if last >= newest.Index {
		var l raft.Log
		err := logs.GetLog(newest.Index, &l)
		if errors.Is(err, raft.ErrLogNotFound) {
			return nil // in a log that may have gaps, the gap marks a replacement
		}
		if err != nil {
			return fmt.Errorf("log entry %d: %w", newest.Index, err)
		}
		if l.Term == newest.Term {
			return nil
		}
	}
	if err := logs.DeleteRange(first, last); err != nil {
		return fmt.Errorf("cannot empty the log that a snapshot replaced: %w", err)
	}
	return nil
}

// GetCommitIndex implements raft.CommitTrackingLogStore.
func (s *logStore) GetCommitIndex() (uint64, error) { return s.maxCommitIndex, nil }

// IsMonotonic implements raft.MonotonicLogStore.
func (s *logStore) IsMonotonic() bool {
	m, ok := s.CommitTrackingLogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// newestSnapshot returns the index and term of the newest snapshot, or 0 if there
// is none.
func (s *logStore) newestSnapshot() (index, term uint64, err error) {
	metas, err := s.snapshots.List()
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("list snapshots: %w", err)
	case len(metas) == 0:
		return 0, 0, nil
	}
	return metas[0].Index, metas[0].Term, nil
}

// startsAfter reports whether the log holds nothing up to and including an index. An
// empty log starts after every index.
func (s *logStore) startsAfter(index uint64) (bool, error) {
	if s.truncatePending.Load() {
		return true, nil
	}
	first, err := s.FirstIndex()
	return first == 0 || first > index, err
}

// GetLog implements raft.LogStore. The extra cost over the underlying store is
// paid for missing entries only.
func (s *logStore) GetLog(index uint64, into *raft.Log) error {
	err := raft.ErrLogNotFound
	if !s.truncatePending.Load() {
		err = s.CommitTrackingLogStore.GetLog(index, into)
	}
	if !errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	at, term, failed := s.newestSnapshot()
	if failed != nil || index < at || at == 0 {
		return cmp.Or(failed, err)
	}
	switch after, failed := s.startsAfter(at); {
	case failed != nil:
		return failed
	case !after:
		return err
	case index == at:
		*into = raft.Log{Index: index, Term: term}
	case index <= s.emptiedEnd.Load():
		*into = raft.Log{Index: index} // term 0 conflicts with every entry of a leader
	default:
		return err
	}
	return nil
}

// DeleteRange implements raft.LogStore. Deleting the whole log while a snapshot
// exists means that the snapshot replaced it.
func (s *logStore) DeleteRange(from, to uint64) error {
	if s.truncatePending.Load() || s.emptiedEnd.Load() != 0 {
		return s.truncate()
	}
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	if last == 0 {
		return nil // Raft's last index can be outdated
	}
	if from > first || to < last {
		return s.CommitTrackingLogStore.DeleteRange(from, to)
	}
	at, _, err := s.newestSnapshot()
	if err != nil || at == 0 {
		return errors.Join(err, s.CommitTrackingLogStore.DeleteRange(from, to))
	}
	if at < last {
		s.emptiedEnd.Store(last)
	}
	s.truncatePending.Store(true)
	return s.truncate()
}

// truncate empties the log if that is pending. It is retried by every later write, so a
// full disk delays the server and does not corrupt its log.
func (s *logStore) truncate() error {
	if !s.truncatePending.Load() {
		return nil
	}
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	last, err := s.LastIndex()
	if err != nil {
		return err
	}
	if last != 0 {
		if err := s.CommitTrackingLogStore.DeleteRange(first, last); err != nil {
			return err
		}
	}
	s.truncatePending.Store(false)
	return nil
}

// StoreLog implements raft.LogStore.
func (s *logStore) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. After the log was emptied, it accepts only
// entries that continue the snapshot.
func (s *logStore) StoreLogs(list []*raft.Log) error {
	if err := s.truncate(); err != nil {
		return err
	}
	if s.emptiedEnd.Load() != 0 && len(list) > 0 {
		at, _, err := s.newestSnapshot()
		if err != nil {
			return err
		}
		if list[0].Index != at+1 {
			return fmt.Errorf("entry %d does not follow the snapshot at %d", list[0].Index, at)
		}
	}
	err := s.CommitTrackingLogStore.StoreLogs(list)
	if err == nil {
		s.emptiedEnd.Store(0)
	}
	return err
}
