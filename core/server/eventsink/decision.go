package eventsink

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage/history"
)

// A Decision is a placement that evicted others: the victims, the beneficiary, and the
// version of the policy that chose the victims. It is built from the applied entry and
// is the same on every server.
type Decision struct {
	Index     uint64
	Time      int64 // of the entry, in Unix nanoseconds
	Namespace string
	events.DecisionPayload
}

// A DecisionQuery selects decisions.
type DecisionQuery struct {
	From      uint64 // only those with this index or a higher one; 0: all
	Before    uint64 // only those with a lower index; 0: all
	Limit     int    // default: 100
	Namespace string // of the job that was placed; "": any
	JobID     string // of the job that was placed; "": any
	EvalID    string // "": any
	Blocked   string // with EvalID: also those of the blocked evaluation that it created
	// Observed, with EvalID and JobID: also decisions that were observed for the job on the
	// state with this index, for an evaluation that one of these replaced; 0: none.
	Observed uint64
	AllocID  string // of the placement or of a victim; "": any
	// Concerns is a job or a binding that was placed or was a victim; zero: any.
	Concerns model.JobKey
}

// matches reports whether the query selects a decision.
func (q *DecisionQuery) matches(d *Decision) bool {
	return d.Index >= q.From && (q.Before == 0 || d.Index < q.Before) && (q.EvalID == "" || q.matchesEval(d)) &&
		(q.AllocID == "" || d.AllocID == q.AllocID || slices.ContainsFunc(d.Victims, func(v events.Victim) bool { return v.AllocID == q.AllocID })) &&
		(q.Namespace == "" || d.Namespace == q.Namespace) &&
		(q.JobID == "" || d.JobID == q.JobID) && (q.Concerns == model.JobKey{} || d.concerns(q.Concerns))
}

// matchesEval reports whether a decision is one of the evaluation of the query.
func (q *DecisionQuery) matchesEval(d *Decision) bool {
	return d.EvalID == q.EvalID || d.EvalID == q.Blocked || q.Observed != 0 && d.Observed && d.PlannedOn == q.Observed
}

// OfEval selects the decisions of an evaluation in a state, and those of the blocked
// evaluation that it created.
func (q *DecisionQuery) OfEval(snap *state.Snapshot, e *model.Evaluation) {
	q.EvalID, q.Blocked, q.Namespace, q.JobID, q.From = e.ID, e.Blocked, e.Namespace, e.JobID, e.CreateIndex
	if len(e.Observed) == 0 && e.Blocked != "" {
		if blocked := snap.Eval(e.Blocked); blocked != nil {
			e = blocked
		}
	}
	if len(e.Observed) > 0 {
		q.Observed = e.Observed[0].PlannedOn
		q.From = min(q.From, q.Observed)
	}
}

// concerns reports whether a job or a binding was placed or was a victim.
func (d *Decision) concerns(key model.JobKey) bool {
	return d.Namespace == key.Namespace && d.JobID == key.ID || slices.ContainsFunc(d.Victims, func(v events.Victim) bool {
		return v.Namespace == key.Namespace && v.JobID == key.ID
	})
}

// Decisions returns preemption decisions, the newest first: all those of the state at the
// time of the call.
func (p *Publisher) Decisions(ctx context.Context, q DecisionQuery) ([]*Decision, error) {
	if err := p.waitForState(ctx); err != nil {
		return nil, apierror.Interrupted(err)
	}
	if q.Limit <= 0 {
		q.Limit = 100
	}
	if p.cfg.History == nil {
		return p.recentDecisions(&q), nil
	}
	return p.recordedDecisions(ctx, &q)
}

// recentDecisions returns matching decisions from memory.
func (p *Publisher) recentDecisions(q *DecisionQuery) []*Decision {
	p.newestMu.Lock()
	defer p.newestMu.Unlock()
	var list []*Decision
	for d := range p.newest.Backward {
		if len(list) == q.Limit {
			break
		}
		if q.matches(d) {
			list = append(list, d)
		}
	}
	return list
}

// recordedDecisions returns matching decisions from the history, which it reads page by
// page.
func (p *Publisher) recordedDecisions(ctx context.Context, q *DecisionQuery) ([]*Decision, error) {
	const page = 256
	query := history.Query{Topic: topicDecisions, Backward: true, Limit: page}
	if q.Before > 0 {
		query.From = q.Before - 1
	}
	var list []*Decision
	for {
		if err := ctx.Err(); err != nil {
			return nil, apierror.Interrupted(err)
		}
		records, err := p.cfg.History.List(query)
		if err != nil {
			return nil, apierror.New(apierror.CodeInternal, "cannot read the history of decisions: %v", err)
		}
		for i := range records {
			if records[i].Index < q.From {
				return list, nil
			}
			var d Decision
			if err := json.Unmarshal(records[i].Data, &d); err != nil {
				return nil, apierror.New(apierror.CodeInternal, "history of decisions is damaged at index %d: %v", records[i].Index, err)
			}
			if q.matches(&d) {
				list = append(list, &d)
			}
			if len(list) == q.Limit {
				return list, nil
			}
		}
		if len(records) < page {
			return list, nil
		}
		query.After = &records[len(records)-1]
	}
}
