package raftnode

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// ErrPastGone means that this server has no snapshot and no entries of the log any more
// from which an earlier state could be computed.
var ErrPastGone = errors.New("the log of this server no longer reaches back to this state")

// StateAt returns the newest state that is not newer than an earlier index, computed from
// the newest snapshot on this server's disk that is not newer, and the entries after it.
// Nothing that the server uses is changed. It costs as much memory as another state, and
// reads up to the whole log. It returns ErrPastGone if the log does not reach back.
func (n *Node) StateAt(ctx context.Context, index uint64) (*state.Snapshot, error) {
	current := n.cfg.Store.Snapshot()
	switch {
	case index == current.Index():
		return current, nil
	case index > current.Index():
		return nil, fmt.Errorf("state at index %d: this server has applied the log up to %d", index, current.Index())
	}
	list, err := n.cfg.Snapshots.List() // newest first
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	for _, meta := range list {
		// The index of a state is never less than that of its entry.
		if meta.Index > index {
			continue
		}
		snap, err := n.replayFrom(ctx, meta, index)
		if err != nil {
			return nil, err
		}
		if snap.Index() <= index { // a restore can raise indexes
			return snap, nil
		}
	}
	return n.replayUntil(ctx, nil, 1, index)
}

// replayFrom applies entries to a snapshot of the disk until the state has an index.
func (n *Node) replayFrom(ctx context.Context, meta *raft.SnapshotMeta, index uint64) (*state.Snapshot, error) {
	_, in, err := n.cfg.Snapshots.Open(meta.ID)
	if err != nil {
		return nil, fmt.Errorf("open snapshot %s: %w", meta.ID, err)
	}
	defer func() { _ = in.Close() }() // it is read only
	return n.replayUntil(ctx, in, meta.Index+1, index)
}

func (n *Node) replayUntil(ctx context.Context, begin io.Reader, from, index uint64) (*state.Snapshot, error) {
	last, err := n.cfg.Log.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	r := &Replay{Snapshot: begin, From: from, To: last, Until: index, Entry: n.cfg.Log.GetLog, Versions: n.cfg.Versions}
	snap, err := r.Run(ctx)
	if errors.Is(err, raft.ErrLogNotFound) {
		return nil, fmt.Errorf("state at index %d: %w", index, ErrPastGone)
	}
	return snap, err
}
