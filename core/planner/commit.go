package planner

import (
	"context"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Committer writes batches into the log: Raft in the server, the state itself
// in the simulator and in tests.
type Committer interface {
	// Commit writes the batch as one entry and returns once the entry is
	// visible in the store. Batches are committed one after the other.
	//
	// An error means that the batch is not in the log and never will be: the
	// applier goes on from the state without it. A committer that cannot tell
	// must first find out (in Raft: by a barrier) or lose the leadership.
	Commit(ctx context.Context, batch *apply.Batch) (CommitResult, error)
}

// CommitResult is where a batch went.
type CommitResult struct {
	Index   uint64
	Dropped []apply.DroppedGroup // what Batch.Apply returned
}

// DirectCommitter commits to a store in the calling goroutine. Whoever else writes to
// the store must not do so at the same time.
type DirectCommitter struct {
	Store *state.Store
	// OnCommit is told what was written; nil: nobody.
	OnCommit func(snap *state.Snapshot, batch *apply.Batch, evals []*model.Evaluation)
}

var _ Committer = DirectCommitter{}

// Commit writes the batch at the store's next index.
func (d DirectCommitter) Commit(_ context.Context, batch *apply.Batch) (CommitResult, error) {
	txn := d.Store.Begin(d.Store.Snapshot().Index() + 1)
	defer txn.Abort()
	evals, dropped := batch.Apply(txn)
	snap := txn.Commit()
	if d.OnCommit != nil {
		d.OnCommit(snap, batch, evals)
	}
	return CommitResult{Index: snap.Index(), Dropped: dropped}, nil
}
