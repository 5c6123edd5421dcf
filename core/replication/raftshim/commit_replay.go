package raftshim

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// maxReplayBatches is the number of full batches that a server applies while it
// starts. Raft queues all of them before the FSM goroutine reads any, and the
// queue holds 128 batches: with more, raft.NewRaft blocks forever. The remaining
// entries are applied once a leader is heard.
const maxReplayBatches = 100

// wrapLogStore makes a starting server apply at once the entries that are
// committed, if its log tracks commits. Otherwise it would serve reads from its
// last snapshot until it hears from a leader. A log that does not track commits
// is returned unchanged.
//
// Raft ignores membership changes in the entries that it replays this way, so that
// the server would start without the members of its cluster. The replay therefore stops
// before the first membership change. Raft processes the rest of the log in its
// ordinary scan.
func wrapLogStore(logs raft.LogStore, snapshots raft.SnapshotStore, c *raft.Config) (raft.LogStore, error) {
	tracking, ok := logs.(raft.CommitTrackingLogStore)
	if !ok {
		return logs, nil
	}
	metas, err := snapshots.List()
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	from := uint64(0)
	if len(metas) > 0 {
		from = metas[0].Index
		if err := discardReplacedLog(tracking, metas[0]); err != nil {
			return nil, err
		}
	}
	committed, err := tracking.GetCommitIndex()
	if err != nil {
		return nil, fmt.Errorf("commit index of the log: %w", err)
	}
	last, err := tracking.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("last index of the log: %w", err)
	}
	limit := from + maxReplayBatches*uint64(c.MaxAppendEntries)
	until, err := lastBeforeMembership(tracking, from, min(committed, last, limit))
	if err != nil {
		return nil, err
	}
	c.RestoreCommittedLogs = true
	return &logStore{CommitTrackingLogStore: tracking, snapshots: snapshots, maxCommitIndex: until}, nil
}

// lastBeforeMembership returns the last index in (from, to] before the first
// membership change, or to if there is none.
func lastBeforeMembership(logs raft.LogStore, from, to uint64) (uint64, error) {
	for index := from + 1; index <= to; index++ {
		var l raft.Log
		if err := logs.GetLog(index, &l); err != nil {
			return 0, fmt.Errorf("log entry %d: %w", index, err)
		}
		if l.Type != raft.LogCommand && l.Type != raft.LogNoop && l.Type != raft.LogBarrier {
			return index - 1, nil
		}
	}
	return to, nil
}
