package whatif

import (
	"context"
	"errors"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
)

// inputs returns the state and the evaluation that a decision was made on.
//
// A worker plans on a state of the log. A plan that a user confirmed was made before its job
// was registered, on a state of its own: the one before, with the job. The entry of the
// decision then holds the job and the evaluation.
func (e *Examiner) inputs(ctx context.Context, d *eventsink.Decision) (*state.Snapshot, *model.Evaluation, error) {
	snap, err := e.stateAt(ctx, d.PlannedOn)
	if err != nil {
		return nil, nil, err
	}
	if eval := snap.Eval(d.EvalID); eval != nil && d.PlannedOn < d.Index {
		return snap, eval, nil
	}
	after, err := e.stateAt(ctx, d.Index)
	if err != nil {
		return nil, nil, err
	}
	key := model.JobKey{Namespace: d.Namespace, ID: d.JobID}
	job, eval := after.Job(key), after.Eval(d.EvalID)
	if job == nil || eval == nil {
		return nil, nil, apierror.New(apierror.CodeConflict, "evaluation %s is not in the state at index %d", d.EvalID, d.PlannedOn)
	}
	pending := *eval
	pending.Status, pending.Queued = model.EvalPending, nil
	if old := snap.Job(key); d.PlannedOn < d.Index && old != nil && old.Version == job.Version {
		return snap, &pending, nil // the plan did not change the job
	}
	before, err := e.stateAt(ctx, d.PlannedOn-1)
	if err != nil {
		return nil, nil, err
	}
	registered, err := codec.DecodeJob(codec.EncodeJob(job))
	if err != nil {
		return nil, nil, err
	}
	fork := before.Fork(before.Index() + 1)
	if err := fork.JobWriter().Upsert(registered); err != nil {
		return nil, nil, err
	}
	fork.JobWriter().SetPreemptionHold(key, state.PreemptionHold{})
	return fork.Snapshot(), &pending, nil
}

// stateAt returns an earlier state.
func (e *Examiner) stateAt(ctx context.Context, index uint64) (*state.Snapshot, error) {
	snap, err := e.states.StateAt(ctx, index)
	switch {
	case err == nil:
		return snap, nil
	case ctx.Err() != nil:
		return nil, apierror.Interrupted(ctx.Err())
	case errors.Is(err, raftnode.ErrPastGone):
		return nil, apierror.New(apierror.CodeConflict, "the log of this server no longer reaches back to index %d, at which the decision was planned", index).
			WithHint("another server may still hold it: its last snapshots are at other indexes")
	}
	return nil, apierror.New(apierror.CodeInternal, "cannot compute the state at index %d: %v", index, err).WithCause(err)
}
