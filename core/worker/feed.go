package worker

import (
	"slices"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// Feed gives the broker and the waiting evaluations what was applied to the
// state.
type Feed struct {
	Broker   *broker.Broker
	Blocked  *broker.Blocked
	Policies *policy.Set

	// beside is the jobs that wait for room and have co-location terms.
	beside map[model.JobKey]struct{}
}

// Evals takes evaluations as they were applied at snap, and returns those that
// thereby became needless: a job of which everything is placed waits for
// nothing. The caller writes their end.
func (f *Feed) Evals(snap *state.Snapshot, now int64, evals ...*model.Evaluation) (needless []*model.Evaluation) {
	for _, e := range evals {
		switch {
		case e.Status == model.EvalPending:
			f.Broker.Enqueue(e)
		case e.Status == model.EvalBlocked:
			if key := e.JobKey(); colocates(snap.Job(key)) {
				if f.beside == nil {
					f.beside = map[model.JobKey]struct{}{}
				}
				f.beside[key] = struct{}{}
			}
			f.Blocked.Block(e, f.screen(snap, now))
		case e.Status == model.EvalComplete && len(e.Failed) == 0:
			delete(f.beside, e.JobKey())
			for _, waiting := range f.Blocked.Untrack(e.JobKey()) {
				if waiting.ID != e.ID {
					needless = append(needless, cancelled(waiting, e.ID, now))
				}
			}
		}
	}
	return needless
}

func cancelled(e *model.Evaluation, by string, now int64) *model.Evaluation {
	c := *e
	c.Status, c.SupersededBy, c.ModifyTime = model.EvalCancelled, by, now
	c.StatusText = "cancelled: a newer evaluation of the job covers it"
	return &c
}

// colocates is whether the job waits to be beside something.
func colocates(j *model.Job) bool {
	return j != nil && slices.ContainsFunc(j.Groups, func(g *model.Group) bool { return len(g.Colocate) > 0 })
}

// Placed wakes evaluations that wait to be beside what was placed on nodes at
// snap. Placements make no room, so nobody else is woken.
func (f *Feed) Placed(snap *state.Snapshot, now int64, nodeIDs ...string) {
	if len(f.beside) > 0 {
		f.Room(snap, now, nodeIDs...)
	}
}

// Room wakes the evaluations that may use room that came up at snap on nodes.
func (f *Feed) Room(snap *state.Snapshot, now int64, nodeIDs ...string) {
	if f.Blocked.Stats().Total == 0 {
		// Nobody waits, but one that is being computed may be about to.
		for _, id := range nodeIDs {
			f.unblock(snap, id, nil)
		}
		return
	}
	screen := f.screen(snap, now)
	for _, id := range nodeIDs {
		f.unblock(snap, id, screen)
	}
}

func (f *Feed) unblock(snap *state.Snapshot, nodeID string, screen broker.Screen) {
	if node := snap.Node(nodeID); node != nil {
		f.Blocked.Unblock(node.ClassKey, nodeID, snap.Index(), screen)
	}
}

func (f *Feed) screen(snap *state.Snapshot, now int64) broker.Screen {
	return &scheduler.Screen{Snap: snap, Policies: f.Policies, Now: now}
}

// Reap returns the ends of evaluations that the broker no longer needs, at most
// a batch; the caller writes them.
func (f *Feed) Reap(now int64) []*model.Evaluation {
	var ends []*model.Evaluation
	for _, list := range [][]*broker.Cancelled{f.Broker.TakeCancelable(0), f.Blocked.TakeDuplicates(0)} {
		for _, c := range list {
			ends = append(ends, cancelled(c.Eval, c.SupersededBy, now))
		}
	}
	return ends
}
