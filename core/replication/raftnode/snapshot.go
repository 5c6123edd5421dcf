package raftnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftshim"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
)

// TakeSnapshot writes the state to this server's disk and truncates the log. It
// returns nil if there is nothing new to write.
func (n *Node) TakeSnapshot(ctx context.Context) error {
	err := n.shim.Do(ctx, func() raft.Future { return n.Raft().Snapshot() })
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return n.readError(err)
}

// SaveSnapshot writes the state of this server, with policy modules, for an
// operator. On the leader it contains everything that was committed before the
// call.
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

// RestoreSnapshot replaces the state of the whole cluster by one that SaveSnapshot
// wrote. It returns replication.ErrNotLeader unless this server is the leader, and
// a *snapshot.Error if the snapshot is damaged or its version is not supported;
// nothing was replaced then. Raft panics if a restore fails midway, so that the
// snapshot is read into a separate state and verified first.
func (n *Node) RestoreSnapshot(ctx context.Context, in io.Reader) (err error) {
	if !n.IsLeader() {
		return n.notLeader()
	}
	file, err := os.CreateTemp("", "cede-restore-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	info, err := snapshot.Inspect(io.TeeReader(in, file))
	if err != nil {
		return err
	}
	versions := n.cfg.Versions.OrOurs()
	if err := errors.Join(versions.CheckNewest(info.Version), versions.CheckOldest(info.Version)); err != nil {
		return &snapshot.Error{What: err.Error()}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: info.Index, Size: info.Bytes}
	if err := n.shim.Restore(ctx, meta, file, timeout(ctx)); err != nil {
		if errors.Is(err, raftshim.ErrSnapshotBusy) {
			return err // nothing was replaced
		}
		return n.writeError(err)
	}
	// An entry after the restore moves every server's state to a new index.
	result, err := n.Apply(ctx, &replication.Entry{Command: &replication.Bootstrap{}})
	if err == nil && result.Err != nil {
		err = result.Err
	}
	if err != nil {
		return fmt.Errorf("after the restore: %w", err)
	}
	return nil
}
