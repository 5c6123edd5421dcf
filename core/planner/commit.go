package planner

import (
	"context"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
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
	Commit(ctx context.Context, batch *state.Batch) (Outcome, error)
}

// Outcome is where a batch went.
type Outcome struct {
	Index   uint64
	Dropped []state.Dropped // what Batch.Apply returned
}

// Direct commits to a store in the calling goroutine. Whoever else writes to
// the store must not do so at the same time.
type Direct struct {
	Store *state.Store
	// Observe is told what was written; nil: nobody.
	Observe func(snap *state.Snapshot, batch *state.Batch, evals []*model.Evaluation)
}

var _ Committer = Direct{}

// Commit writes the batch at the store's next index.
func (d Direct) Commit(_ context.Context, batch *state.Batch) (Outcome, error) {
	txn := d.Store.Begin(d.Store.Snapshot().Index() + 1)
	defer txn.Abort()
	evals, dropped := batch.Apply(txn)
	snap := txn.Commit()
	if d.Observe != nil {
		d.Observe(snap, batch, evals)
	}
	return Outcome{Index: snap.Index(), Dropped: dropped}, nil
}
