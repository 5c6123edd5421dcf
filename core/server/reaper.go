package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/worker"
)

// reapDelay is how long the reaper gathers what becomes needless: an entry for
// each would undo what shedding saves.
const reapDelay = 250 * time.Millisecond

// reap writes the ends of evaluations that the broker found needless, or
// delivered too often, until ctx ends.
func (t *term) reap(ctx context.Context) {
	for {
		select {
		case <-t.broker.Wakeup():
		case <-ctx.Done():
			return
		}
		// What is left of a full entry waits for company as well: where a backlog of one
		// job after another becomes needless, every second entry would be a small one.
		for more := true; more; more = t.reapOnce(ctx) {
			if !t.full() && !clock.Sleep(ctx, t.cfg.Clock, reapDelay) {
				return
			}
		}
	}
}

// full is whether there is a whole entry to write.
func (t *term) full() bool {
	stats := t.broker.Stats()
	total := stats.Total()
	return total.Cancelable >= t.cfg.EvalBatch
}

// reapOnce writes one entry of each kind, and tells whether there may be more.
func (t *term) reapOnce(ctx context.Context) (more bool) {
	cancelable, failed := t.broker.PopCancelable(0), t.broker.PopFailed(0)
	duplicates := t.blocked.PopDuplicates(max(t.cfg.EvalBatch-len(cancelable), 1))
	now := t.writer.Now()
	var ends []*model.Evaluation
	for _, c := range slices.Concat(cancelable, duplicates) {
		ends = append(ends, worker.Cancelled(c.Eval, c.SupersededBy, now))
	}
	for _, e := range failed {
		ends = append(ends, t.gaveUp(e, now)...)
	}
	if len(ends) == 0 {
		return false
	}
	if _, err := t.writer.Commit(ctx, &replication.WriteEvals{Evals: ends}); err != nil {
		t.broker.ReturnCancelable(cancelable)
		t.broker.ReturnFailed(failed)
		t.blocked.ReturnDuplicates(duplicates)
		if ctx.Err() == nil {
			t.logger.WarnContext(ctx, "needless evaluations not written", "evals", len(ends), "err", err)
		}
		return clock.Sleep(ctx, t.cfg.Clock, time.Second)
	}
	return len(ends) >= t.cfg.EvalBatch
}

// gaveUp ends an evaluation that was delivered too often. Its job is looked at
// again after a while, for its own sake and for whoever waits for it; not at
// once, as what makes an evaluation fail seldom goes away by itself.
func (t *term) gaveUp(e *model.Evaluation, now int64) []*model.Evaluation {
	done := *e
	done.Status, done.ModifyTime = model.EvalFailed, now
	done.StatusText = "it was worked on several times and came to nothing: see the logs of the servers"
	done.Classes, done.BlockedNodes = nil, nil
	again := t.evalFactory().ForKey(t.Snapshot(), e.JobKey(), model.TriggerFailed)
	if again == nil {
		return []*model.Evaluation{&done}
	}
	wait := t.cfg.FollowUpDelay + time.Duration(t.cfg.Random(int64(t.cfg.FollowUpJitter)))
	done.StatusText += fmt.Sprintf("; it is tried again in %v", wait.Round(time.Second))
	again.Previous, again.WaitUntil = e.ID, now+int64(wait)
	return []*model.Evaluation{&done, again}
}

// end writes the ends of evaluations that wait for nothing any more.
func (t *term) end(needless []*model.Evaluation) {
	t.group.Go(func() {
		if _, err := t.writer.Commit(t.ctx, &replication.WriteEvals{Evals: needless}); err != nil && t.ctx.Err() == nil {
			t.logger.WarnContext(t.ctx, "needless evaluations not written", "evals", len(needless), "err", err)
		}
	})
}
