package planner

import (
	"errors"
	"fmt"
)

// ErrDisabled means that this server applies no plans: it is not the leader,
// or stopped being it while the plan waited. Nothing of the plan was applied.
var ErrDisabled = errors.New("plan queue is disabled")

// ErrStopped means that the applier stopped before the plan was committed.
// Nothing of the plan was applied.
var ErrStopped = errors.New("plan applier stopped")

// ErrStateBehind means that the state did not reach the index that the plan
// was made on within the time the applier waits.
var ErrStateBehind = errors.New("state is behind the plan's snapshot")

// PlanError says what is malformed about a plan. Such a plan is the fault of
// whoever made it: planning again on newer state would not help, so it is
// refused whole instead of being rejected group by group.
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

// CommitError says that a plan was fine and writing it down failed.
type CommitError struct{ Err error }

func (e *CommitError) Error() string { return "commit of the plan: " + e.Err.Error() }

// Unwrap is what the committer said.
func (e *CommitError) Unwrap() error { return e.Err }
