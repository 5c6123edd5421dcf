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

// planCommitter writes the batches of the plan applier into the log.
//
// The applier verifies the next batch against the outcome of this one. If the outcome is
// unknown, that would be a state which may not exist, so the term ends: nothing more is
// written in it, leadership is transferred, and the next leader, perhaps this server, first
// waits for everything that was written before. Any other failure means that this server
// does not lead any more and ends the term as well, except that of a log which is
// overloaded: then nothing was written.
type planCommitter struct {
	term   *term
	broken atomic.Bool
}

var _ planner.Committer = (*planCommitter)(nil)

// Commit writes a batch as one entry and waits until it is applied here.
func (c *planCommitter) Commit(ctx context.Context, batch *apply.Batch) (planner.CommitResult, error) {
	if c.broken.Load() {
		return planner.CommitResult{}, evalqueue.ErrLeadershipLost
	}
	s := c.term.s
	from := s.cfg.Clock.Now()
	result, err := c.write(ctx, batch)
	if err != nil {
		if !errors.Is(err, replication.ErrBusy) {
			c.broken.Store(true)
			c.term.fail(err)
		}
		return planner.CommitResult{}, err
	}
	s.metrics.observeCommit(s.cfg.Clock.Now().Sub(from))
	return planner.CommitResult{Index: result.Index, Dropped: result.Dropped}, nil
}

func (c *planCommitter) write(ctx context.Context, batch *apply.Batch) (*replication.Result, error) {
	log := c.term.s.cfg.Log
	if now := log.Term(); now != c.term.number {
		return nil, fmt.Errorf("%w: it was term %d, now it is %d", evalqueue.ErrLeadershipLost, c.term.number, now)
	}
	entry := &replication.Entry{Time: batch.Now, Command: &replication.ApplyPlans{Batch: batch}}
	result, err := log.Apply(ctx, entry)
	if err != nil {
		return nil, fmt.Errorf("write plans: %w", err)
	}
	if result.Err != nil {
		return nil, fmt.Errorf("apply plans: %w", result.Err)
	}
	return result, nil
}
