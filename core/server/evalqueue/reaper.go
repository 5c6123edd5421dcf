package evalqueue

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/worker"
)

// reapDelay is how long the reaper collects evaluations before it writes them: one entry
// for each would cost as much as shedding saves.
const reapDelay = 250 * time.Millisecond

// A Reaper writes, on the leader, evaluations that the broker has cancelled because
// another one covers them, or that failed too often. All fields are required.
type Reaper struct {
	Writer  *logwriter.Writer
	Broker  *broker.Broker
	Blocked *broker.Blocked
	Evals   Factory
	Clock   clock.Clock
	Logger  *slog.Logger
	Random  func(n int64) int64 // in [0, n), for jitter

	Batch          int           // evaluations in one entry at most
	FollowUpDelay  time.Duration // before a failed evaluation is tried again, at least
	FollowUpJitter time.Duration // in addition, at most
}

// Run writes evaluations until ctx ends.
func (r *Reaper) Run(ctx context.Context) {
	for {
		select {
		case <-r.Broker.Wakeup():
		case <-ctx.Done():
			return
		}
		// The rest of a full entry waits as well. Otherwise, if a backlog of many jobs
		// becomes needless, every second entry would be a small one.
		for more := true; more; more = r.reap(ctx) {
			if !r.hasFullBatch() && !clock.Sleep(ctx, r.Clock, reapDelay) {
				return
			}
		}
	}
}

// hasFullBatch reports whether there is a full entry to write.
func (r *Reaper) hasFullBatch() bool {
	stats := r.Broker.Stats()
	total := stats.Total()
	return total.Cancelable >= r.Batch
}

// reap writes one entry, and reports whether there may be more to write.
func (r *Reaper) reap(ctx context.Context) (more bool) {
	cancelable, failed := r.Broker.PopCancelable(0), r.Broker.PopFailed(0)
	duplicates := r.Blocked.PopDuplicates(max(r.Batch-len(cancelable), 1))
	now := r.Writer.Now()
	var evals []*model.Evaluation
	seen := map[string]struct{}{} // an entry that lists an evaluation twice is refused
	for _, c := range slices.Concat(cancelable, duplicates) {
		if _, twice := seen[c.Eval.ID]; !twice {
			seen[c.Eval.ID] = struct{}{}
			evals = append(evals, worker.Cancelled(c.Eval, c.SupersededBy, now))
		}
	}
	for _, e := range failed {
		evals = append(evals, r.failedEvals(e, now)...)
	}
	if len(evals) == 0 {
		return false
	}
	if err := r.write(ctx, evals); err != nil {
		r.Broker.ReturnCancelable(cancelable)
		r.Broker.ReturnFailed(failed)
		r.Blocked.ReturnDuplicates(duplicates)
		return clock.Sleep(ctx, r.Clock, time.Second)
	}
	return len(evals) >= r.Batch
}

// Write writes evaluations that have become needless. A failure is logged: the next leader
// finds them in the state.
func (r *Reaper) Write(ctx context.Context, needless []*model.Evaluation) { _ = r.write(ctx, needless) }

func (r *Reaper) write(ctx context.Context, evals []*model.Evaluation) error {
	_, err := r.Writer.Commit(ctx, &replication.WriteEvals{Evals: evals})
	if err != nil && ctx.Err() == nil {
		r.Logger.WarnContext(ctx, "failed to write cancelled evaluations", "evals", len(evals), "err", err)
	}
	return err
}

// failedEvals returns a failed evaluation and its follow-up. The job is evaluated again
// after a while, also for the evaluations behind it; not at once, because the cause of a
// failure seldom disappears by itself.
func (r *Reaper) failedEvals(e *model.Evaluation, now int64) []*model.Evaluation {
	done := *e
	done.Status, done.ModifyTime = model.EvalFailed, now
	done.StatusText = "failed several times: see the logs of the servers"
	done.Classes, done.BlockedNodes = nil, nil
	next := r.Evals.ForKey(r.Writer.Snapshot(), e.JobKey(), model.TriggerFailed)
	if next == nil {
		return []*model.Evaluation{&done}
	}
	wait := r.FollowUpDelay + time.Duration(r.Random(int64(r.FollowUpJitter)))
	done.StatusText += fmt.Sprintf("; it is tried again in %v", wait.Round(time.Second))
	next.Previous, next.WaitUntil = e.ID, now+int64(wait)
	return []*model.Evaluation{&done, next}
}
