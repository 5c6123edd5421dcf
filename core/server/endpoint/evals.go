package endpoint

import (
	"context"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// MaxCancelled is the maximum number of evaluations that one call cancels. They fit into
// one log entry, so that all of them are cancelled or none.
const MaxCancelled = 1000

// Evaluations cancels evaluations.
type Evaluations struct {
	writer  *logwriter.Writer
	updates *evalqueue.Updates
	broker  *broker.Broker
	blocked *broker.Blocked
}

// CancelEvals cancels pending and blocked evaluations, all of them or none, and returns
// the index at which they are cancelled. An evaluation that is cancelled already is
// accepted, so that a call can be repeated. If one is unknown, is being processed or has
// ended, nothing is cancelled, and the error lists every such evaluation. canSee reports
// whether the caller may access a namespace; other evaluations are unknown to it.
//
// The state does not record that an evaluation is being processed. So the evaluations are
// first removed from the broker, after which no worker receives them, and checked against
// the state afterwards: a worker writes its result before it returns the delivery.
func (e *Evaluations) CancelEvals(ctx context.Context, ids []string, canSee func(namespace string) bool) (uint64, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return 0, err
	}
	if len(ids) == 0 || len(ids) > MaxCancelled {
		return 0, apierror.New(apierror.CodeInvalid, "cannot cancel %d evaluations: the number must be between 1 and %d", len(ids), MaxCancelled)
	}
	if err := e.writer.Check(ctx, func(snap *state.Snapshot) error { return e.check(snap, ids, canSee) }); err != nil {
		return 0, err
	}
	for _, id := range ids {
		e.broker.Remove(id)
		e.blocked.Remove(id)
	}
	snap := e.writer.Snapshot()
	if err := e.check(snap, ids, canSee); err != nil {
		e.restore(ids)
		return 0, err
	}
	evals := e.cancelled(snap, ids)
	if len(evals) == 0 {
		return snap.Index(), nil
	}
	result, err := e.updates.Write(ctx, evals...)
	if err == nil {
		err = logwriter.Refusal(result)
	}
	if err != nil {
		e.restore(ids)
		return 0, err
	}
	return result.Index, nil
}

// check returns an error that lists each evaluation that cannot be cancelled.
func (e *Evaluations) check(snap *state.Snapshot, ids []string, canSee func(namespace string) bool) error {
	var problems []string
	code := apierror.CodeNotFound
	for _, id := range ids {
		eval := snap.Eval(id)
		if eval == nil || !canSee(eval.Namespace) {
			problems = append(problems, fmt.Sprintf("evaluation %.60q not found", id))
			continue
		}
		why := ""
		if e.broker.Locate(id).State == broker.StateUnacked {
			why = "is being processed"
		} else if eval.Status.Final() && eval.Status != model.EvalCancelled {
			why = "is " + eval.Status.String()
		}
		if why != "" {
			code = apierror.CodeConflict
			problems = append(problems, fmt.Sprintf("evaluation %s of job %s %s", id, eval.JobID, why))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return apierror.New(code, "cannot cancel %d of %d evaluations: %s", len(problems), len(ids), strings.Join(problems, "; ")).WithDetails(map[string]any{"Problems": problems}).
		WithHint("nothing was cancelled: only pending and blocked evaluations can be; omit the others")
}

// cancelled returns the cancelled versions of evaluations that are not final, each once.
func (e *Evaluations) cancelled(snap *state.Snapshot, ids []string) []*model.Evaluation {
	var list []*model.Evaluation
	seen := map[string]bool{}
	for _, id := range ids {
		old := snap.Eval(id)
		if seen[id] || old.Status.Final() {
			continue
		}
		seen[id] = true
		c := *old
		c.Status, c.StatusText = model.EvalCancelled, "cancelled by an operator"
		c.Classes, c.BlockedNodes = nil, nil
		list = append(list, &c)
	}
	return list
}

// restore queues evaluations that were removed and not cancelled. A blocked one is
// evaluated once more.
func (e *Evaluations) restore(ids []string) {
	snap := e.writer.Snapshot()
	for _, id := range ids {
		if eval := snap.Eval(id); eval != nil && !eval.Status.Final() {
			e.broker.Enqueue(eval)
		}
	}
}
