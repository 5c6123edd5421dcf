package whatif

import (
	"context"

	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// NodeRisk returns the victims that would be next on a node of a state, by the policies of that
// state. It calls newest for the state when its turn comes, so that requests that wait do not
// retain states.
func (e *Examiner) NodeRisk(ctx context.Context, newest func() *state.Snapshot, nodeID string) (*counterfactual.Forecast, error) {
	ctx, release, err := e.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	snap := newest()
	policies, err := e.policies.CopyOf(snap, nil)
	if err != nil {
		return nil, apierror.New(apierror.CodeConflict, "cannot start the policies: %v", err).WithCause(err)
	}
	defer policies.Unpin()
	f, err := counterfactual.NextOnNode(ctx, counterfactual.Case{Snap: snap, Now: e.clock.Now().UnixNano(), Policies: policies}, nodeID)
	switch {
	case err == nil:
		return f, nil
	case ctx.Err() != nil:
		return nil, apierror.Interrupted(ctx.Err())
	}
	return nil, apierror.New(apierror.CodeConflict, "cannot determine what would be evicted next: %v", err).WithCause(err)
}
