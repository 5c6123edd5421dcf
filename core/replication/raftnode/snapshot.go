package raftnode

import (
	"context"
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication/snapshot"
)

// TakeSnapshot writes the state to this server's disk and truncates the log. It returns
// nil if there is nothing new to write. Raft does so by itself at intervals; an
// operator's call only brings it forward.
func (n *Node) TakeSnapshot(ctx context.Context) error {
	err := n.shim.Do(ctx, func() raft.Future { return n.Raft().Snapshot() })
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return n.readError(err)
}

// SaveSnapshot writes the state of this server, with policy modules, for an operator.
// On the leader it contains everything that was committed before the call. On a
// follower it may lack the most recent entries. Nothing is written to this server's
// disk.
func (n *Node) SaveSnapshot(ctx context.Context, out io.Writer) error {
	if n.IsLeader() {
		if err := n.Barrier(ctx); err != nil {
			return err
		}
	}
	release := n.fsm.PinModules()
	defer release()
	return snapshot.Write(&contextWriter{ctx, out}, n.cfg.Store.Snapshot(), n.fsm.Module)
}

// A contextWriter fails once its context is done.
type contextWriter struct {
	ctx context.Context
	out io.Writer
}

func (w *contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.out.Write(p)
}
