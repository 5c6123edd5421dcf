package planner

import (
	"context"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A Committer writes batches to the log: Raft in the server, the state itself in
// the simulator and in tests.
type Committer interface {
	// Commit writes the batch as one entry and returns once the entry is visible in
	// the store. Batches are committed one after the other.
	//
	// An error means that the batch is not in the log and never will be: the
	// applier continues from the state without it. If a committer cannot determine
	// the outcome, it must find out first (in Raft: by a barrier) or give up
	// leadership.
	Commit(ctx context.Context, batch *apply.Batch) (CommitResult, error)
}

// A CommitResult is the result of a committed batch.
type CommitResult struct {
	Index   uint64
	Dropped []apply.DroppedGroup // as returned by Batch.Apply
}

// A DirectCommitter commits to a store in the calling goroutine. No other goroutine
// may write to the store at the same time.
type DirectCommitter struct {
	Store *state.Store
	// OnCommit is called after each commit; nil disables it.
	OnCommit func(snap *state.Snapshot, batch *apply.Batch, evals []*model.Evaluation)
}

var _ Committer = DirectCommitter{}

// Commit writes the batch at the next index of the store.
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
