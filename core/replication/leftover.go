package replication

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// boundedCommits is the log as Raft gets to see it. It admits to no more commits than can
// be replayed at the start, and it helps Raft over what a snapshot leaves behind.
//
// A follower may have entries that only it has, from when it led alone or followed
// somebody who did. Where there are more of them than the leader's log keeps behind its
// snapshot, it gets the snapshot. Raft then empties the log, and goes on believing in its old
// end: what the leader sends is compared with entries that are gone, and the snapshot is
// sent again, without a pause and for ever. Here Raft finds in their place entries of no
// term, which it replaces by the leader's.
//
// And where a log begins behind a snapshot, Raft finds the entry of the snapshot, to
// compare it with the one that the leader goes on behind. A leader sends none of these
// entries to others: it takes the one before them for gone, and sends the snapshot.
type boundedCommits struct {
	raft.CommitTrackingLogStore
	snapshots raft.SnapshotStore
	most      uint64

	left atomic.Uint64 // where the log ended that was emptied; 0: Raft knows where it ends
	owed atomic.Bool   // the disk refused to empty it: nothing is to be read there, and it is tried again
}

// replaced empties the log where the newest snapshot replaced it, and the server stopped
// before that was done: Raft would append behind entries that nobody else has, and as a
// leader send them to others.
func replaced(logs raft.LogStore, newest *raft.SnapshotMeta) error {
	first, err := logs.FirstIndex()
	if err != nil {
		return fmt.Errorf("start of the log: %w", err)
	}
	last, err := logs.LastIndex()
	if err != nil {
		return fmt.Errorf("end of the log: %w", err)
	}
	if last == 0 || first > newest.Index {
		return nil // it goes on behind the snapshot
	}
	if last >= newest.Index {
		var l raft.Log
		err := logs.GetLog(newest.Index, &l)
		if errors.Is(err, raft.ErrLogNotFound) {
			return nil // a log with gaps shows by one that something was replaced
		}
		if err != nil {
			return fmt.Errorf("log entry %d: %w", newest.Index, err)
		}
		if l.Term == newest.Term {
			return nil
		}
	}
	if err := logs.DeleteRange(first, last); err != nil {
		return fmt.Errorf("emptying the log behind a snapshot: %w", err)
	}
	return nil
}

// GetCommitIndex implements raft.CommitTrackingLogStore.
func (b *boundedCommits) GetCommitIndex() (uint64, error) { return b.most, nil }

// IsMonotonic implements raft.MonotonicLogStore.
func (b *boundedCommits) IsMonotonic() bool {
	m, ok := b.CommitTrackingLogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// newest is the index and the term of the newest snapshot; 0: there is none.
func (b *boundedCommits) newest() (index, term uint64, err error) {
	metas, err := b.snapshots.List()
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("snapshots: %w", err)
	case len(metas) == 0:
		return 0, 0, nil
	}
	return metas[0].Index, metas[0].Term, nil
}

// beginsBehind is whether nothing is in the log up to an index.
func (b *boundedCommits) beginsBehind(index uint64) (bool, error) {
	if b.owed.Load() {
		return true, nil
	}
	first, err := b.FirstIndex()
	return first == 0 || first > index, err
}

// GetLog implements raft.LogStore.
func (b *boundedCommits) GetLog(index uint64, to *raft.Log) error {
	err := raft.ErrLogNotFound
	if !b.owed.Load() {
		err = b.CommitTrackingLogStore.GetLog(index, to)
	}
	if !errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	at, term, failed := b.newest()
	if failed != nil || index < at || at == 0 {
		return cmp.Or(failed, err)
	}
	switch behind, failed := b.beginsBehind(at); {
	case failed != nil:
		return failed
	case !behind:
		return err
	case index == at:
		*to = raft.Log{Index: index, Term: term}
	case index <= b.left.Load():
		*to = raft.Log{Index: index}
	default:
		return err
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (b *boundedCommits) DeleteRange(from, to uint64) error {
	if b.owed.Load() || b.left.Load() != 0 {
		return b.empty()
	}
	first, err := b.FirstIndex()
	if err != nil {
		return err
	}
	last, err := b.LastIndex()
	if err != nil {
		return err
	}
	if last == 0 {
		return nil // Raft may believe that it is not empty
	}
	if from > first || to < last {
		return b.CommitTrackingLogStore.DeleteRange(from, to)
	}
	at, _, err := b.newest()
	if err != nil || at == 0 {
		return errors.Join(err, b.CommitTrackingLogStore.DeleteRange(from, to))
	}
	if at < last {
		b.left.Store(last)
	}
	b.owed.Store(true)
	return b.empty()
}

// empty empties the log where that is owed.
func (b *boundedCommits) empty() error {
	if !b.owed.Load() {
		return nil
	}
	first, err := b.FirstIndex()
	if err != nil {
		return err
	}
	last, err := b.LastIndex()
	if err != nil {
		return err
	}
	if last != 0 {
		if err := b.CommitTrackingLogStore.DeleteRange(first, last); err != nil {
			return err
		}
	}
	b.owed.Store(false)
	return nil
}

// StoreLog implements raft.LogStore.
func (b *boundedCommits) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (b *boundedCommits) StoreLogs(list []*raft.Log) error {
	if err := b.empty(); err != nil {
		return err
	}
	if b.left.Load() != 0 && len(list) > 0 {
		at, _, err := b.newest()
		if err != nil {
			return err
		}
		if list[0].Index != at+1 {
			return fmt.Errorf("entry %d does not follow the snapshot at %d", list[0].Index, at)
		}
	}
	err := b.CommitTrackingLogStore.StoreLogs(list)
	if err == nil {
		b.left.Store(0)
	}
	return err
}
