package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// committer writes the applier's batches into the log.
//
// What the applier checks next rests on what became of this batch, so an outcome
// that nobody knows would have it check on a state that may not be. Then the term
// ends: nothing more is written in it, the lead is given up, and whoever leads
// next, perhaps this server, first waits for everything that was written before.
// The same goes for any other failure: it means that this server leads no more.
// Only a log that is too busy is told apart: it says that nothing was written.
type committer struct {
	term   *term
	broken atomic.Bool
}

var _ planner.Committer = (*committer)(nil)

// Commit writes a batch as one entry and waits until it is applied here.
func (c *committer) Commit(ctx context.Context, batch *apply.Batch) (planner.CommitResult, error) {
	if c.broken.Load() {
		return planner.CommitResult{}, evalqueue.ErrLeadershipLost
	}
	from := c.term.cfg.Clock.Now()
	result, err := c.write(ctx, batch)
	if err != nil {
		if !errors.Is(err, replication.ErrBusy) {
			c.broken.Store(true)
			c.term.fall(err)
		}
		return planner.CommitResult{}, err
	}
	c.term.metrics.committed(c.term.cfg.Clock.Now().Sub(from))
	return planner.CommitResult{Index: result.Index, Dropped: result.Dropped}, nil
}

func (c *committer) write(ctx context.Context, batch *apply.Batch) (*replication.Result, error) {
	log := c.term.cfg.Log
	if now := log.Term(); now != c.term.number {
		return nil, fmt.Errorf("%w: it was %d, now it is %d", evalqueue.ErrLeadershipLost, c.term.number, now)
	}
	entry := &replication.Entry{Time: batch.Now, Command: &replication.ApplyPlans{Batch: batch}}
	result, err := log.Apply(ctx, entry)
	if err != nil {
		return nil, fmt.Errorf("plans are not written: %w", err)
	}
	if result.Err != nil {
		return nil, fmt.Errorf("plans are refused: %w", result.Err)
	}
	return result, nil
}
