package replication

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// TakeSnapshot has the state written to the disk and the log cut.
func (n *Node) TakeSnapshot(ctx context.Context) error {
	err := n.wait(ctx, func() raft.Future { return n.raft.Snapshot() })
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return n.explainRead(err)
}

// SaveSnapshot writes the state of this server, policy modules included. On the
// leader it holds everything that was committed before the call.
func (n *Node) SaveSnapshot(ctx context.Context, out io.Writer) error {
	if n.IsLeader() {
		if err := n.Barrier(ctx); err != nil {
			return err
		}
	}
	end := n.fsm.modules.read()
	defer func() { end(n.cfg.Store.Snapshot()) }()
	return writeSnapshot(&stoppable{ctx, out}, n.cfg.Store.Snapshot(), n.fsm.modules.get)
}

// stoppable fails once ctx ends.
type stoppable struct {
	ctx context.Context
	out io.Writer
}

func (s *stoppable) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.out.Write(p)
}

// SnapshotInfo is what a snapshot holds.
type SnapshotInfo struct {
	ClusterID                                  string
	Version                                    uint32
	Index                                      uint64
	Bytes                                      int64
	Nodes, Jobs, Allocs, Evals, Policies, Mods int
	Hash                                       [32]byte
}

// InspectSnapshot reads a snapshot as SaveSnapshot wrote it, checks all of it,
// and says what it holds. Its error is a *SnapshotError.
func InspectSnapshot(in io.Reader) (*SnapshotInfo, error) {
	counted := &countedReader{in: in}
	store := state.New()
	s := &restorer{begin: store.BeginRestore}
	defer func() {
		if s.txn != nil {
			s.txn.Abort()
		}
	}()
	if err := s.read(counted); err != nil {
		return nil, err
	}
	sn := s.txn.Commit()
	info := &SnapshotInfo{
		ClusterID: sn.Meta().ClusterID, Version: sn.Meta().Version, Index: sn.Index(), Bytes: counted.n,
		Nodes: sn.NodeCount(), Allocs: sn.AllocCount(), Evals: sn.EvalCount(), Policies: len(sn.PolicyVersions()),
		Mods: s.modules, Hash: Hash(sn),
	}
	for range sn.Jobs() {
		info.Jobs++
	}
	return info, nil
}

type countedReader struct {
	in io.Reader
	n  int64
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.n += int64(n)
	return n, err
}

// RestoreSnapshot replaces the state of the whole cluster by one that
// SaveSnapshot wrote. This server must lead. All of it is read and checked
// before anything is replaced.
func (n *Node) RestoreSnapshot(ctx context.Context, in io.Reader) (err error) {
	if !n.IsLeader() {
		return n.notLeader()
	}
	file, err := os.CreateTemp("", "cede-restore-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	info, err := InspectSnapshot(io.TeeReader(in, file))
	if err != nil {
		return err
	}
	if err := errors.Join(n.fsm.version.tooNew(info.Version), n.fsm.version.tooOld(info.Version)); err != nil {
		return &SnapshotError{What: err.Error()}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := n.replace(ctx, info, file); err != nil {
		return err
	}
	// An entry after it, so that every server's state is at a new index.
	result, err := n.Apply(ctx, &Entry{Command: &Bootstrap{}})
	if err == nil && result.Err != nil {
		err = result.Err
	}
	if err != nil {
		return fmt.Errorf("after the restore: %w", err)
	}
	return nil
}

// replace has Raft take a snapshot that an operator brings.
func (n *Node) replace(ctx context.Context, info *SnapshotInfo, file io.Reader) error {
	if !n.fsm.writing.begin(ctx.Done()) {
		return context.Cause(ctx)
	}
	defer n.fsm.writing.end()
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: info.Index, Size: info.Bytes}
	if err := n.raft.Restore(meta, file, untilDeadline(ctx)); err != nil {
		return n.explain(err)
	}
	return nil
}
