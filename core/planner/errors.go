package planner

import (
	"errors"
	"fmt"
)

// ErrDisabled means that this server applies no plans: it is not the leader, or
// lost leadership while the plan was queued. Nothing of the plan was applied.
var ErrDisabled = errors.New("plan queue is disabled")

// ErrStopped means that the applier stopped before the plan was committed.
// Nothing of the plan was applied.
var ErrStopped = errors.New("plan applier stopped")

// ErrUnknownOutcome means that the caller stopped waiting after the applier had taken the
// plan.
var ErrUnknownOutcome = errors.New("plan may still be applied")

// ErrStateBehind means that the state did not reach the plan's snapshot index
// within the time that the applier waits.
var ErrStateBehind = errors.New("state is behind the plan's snapshot")

// A PlanError describes a malformed plan. Planning again on newer state would not
// help, so the plan is refused as a whole instead of being rejected group by group.
type PlanError struct {
	EvalID string
	Group  int // position in Plan.Groups; -1 for the plan itself
	Fault  string
}

func (e *PlanError) Error() string {
	if e.Group < 0 {
		return fmt.Sprintf("malformed plan of evaluation %q: %s", e.EvalID, e.Fault)
	}
	return fmt.Sprintf("malformed plan of evaluation %q: group %d: %s", e.EvalID, e.Group, e.Fault)
}

// A CommitError means that the plan was valid and the commit failed.
type CommitError struct{ Err error }

func (e *CommitError) Error() string { return "commit of the plan: " + e.Err.Error() }

// Unwrap returns the error of the committer.
func (e *CommitError) Unwrap() error { return e.Err }
