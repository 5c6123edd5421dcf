package replication

import (
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
// end: the entry of the snapshot, behind which the leader goes on, is not found, and the
// snapshot is sent again, without a pause and for ever. Here Raft finds that entry, and
// in place of those behind it entries of no term, which it replaces by the leader's.
type boundedCommits struct {
	raft.CommitTrackingLogStore
	snapshots raft.SnapshotStore
	most      uint64

	// Of the log that was emptied: the snapshot in its place, and where it ended, behind
	// the snapshot. nil: Raft knows where the log ends.
	left atomic.Pointer[leftover]
}

type leftover struct{ index, term, last uint64 }

// GetCommitIndex implements raft.CommitTrackingLogStore.
func (b *boundedCommits) GetCommitIndex() (uint64, error) { return b.most, nil }

// IsMonotonic implements raft.MonotonicLogStore.
func (b *boundedCommits) IsMonotonic() bool {
	m, ok := b.CommitTrackingLogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// GetLog implements raft.LogStore.
func (b *boundedCommits) GetLog(index uint64, to *raft.Log) error {
	err := b.CommitTrackingLogStore.GetLog(index, to)
	if err == nil {
		return nil
	}
	switch l := b.left.Load(); {
	case l == nil || index < l.index || index > l.last:
		return err
	case index == l.index:
		*to = raft.Log{Index: index, Term: l.term}
	default:
		*to = raft.Log{Index: index}
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (b *boundedCommits) DeleteRange(from, to uint64) error {
	if b.left.Load() != nil {
		return nil // it is empty
	}
	first, err := b.FirstIndex()
	if err != nil {
		return err
	}
	last, err := b.LastIndex()
	if err != nil {
		return err
	}
	if err := b.CommitTrackingLogStore.DeleteRange(from, to); err != nil || from > first || to < last {
		return err
	}
	metas, err := b.snapshots.List()
	if err != nil {
		return fmt.Errorf("snapshots: %w", err)
	}
	if len(metas) > 0 && metas[0].Index < last {
		b.left.Store(&leftover{metas[0].Index, metas[0].Term, last})
	}
	return nil
}

// StoreLog implements raft.LogStore.
func (b *boundedCommits) StoreLog(l *raft.Log) error { return b.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (b *boundedCommits) StoreLogs(list []*raft.Log) error {
	if l := b.left.Load(); l != nil && len(list) > 0 && list[0].Index != l.index+1 {
		return fmt.Errorf("entry %d does not follow the snapshot at %d", list[0].Index, l.index)
	}
	err := b.CommitTrackingLogStore.StoreLogs(list)
	if err == nil {
		b.left.Store(nil)
	}
	return err
}
