package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/storage/history"
)

// Decision is a placement that cost somebody theirs: who was evicted for whom,
// and which version of which policy chose so. It is made from the applied entry,
// the same on every server.
type Decision struct {
	Index     uint64
	Time      int64 // Unix nanoseconds, of the entry
	Namespace string
	events.DecisionPayload
}

// decisions tells, for each placement or claim of a group, who made room for it.
func (n *narrator) decisions(plan *model.Plan, g *model.CommitGroup) {
	beneficiaries := make([]string, 0, 1)
	byWhom := map[string][]model.Eviction{}
	for _, e := range g.Evictions {
		if byWhom[e.By] == nil {
			beneficiaries = append(beneficiaries, e.By)
		}
		byWhom[e.By] = append(byWhom[e.By], e)
	}
	for _, by := range beneficiaries {
		n.decision(plan, g, by, byWhom[by])
	}
}

func (n *narrator) decision(plan *model.Plan, g *model.CommitGroup, by string, evictions []model.Eviction) {
	d := events.DecisionPayload{
		EvalID: plan.EvalID, JobID: plan.Job.ID, AllocID: by, Priority: plan.Priority, PolicyVersion: evictions[0].Policy,
	}
	for _, a := range g.Placements {
		if a.ID == by {
			d.Group, d.NodeID = a.Group.Name, a.NodeID
		}
	}
	for _, e := range evictions {
		v, ok := n.victim(e)
		if !ok {
			continue
		}
		d.Victims = append(d.Victims, v)
		n.add(events.Preemption, "AllocationPreempted", v.Namespace, v.AllocID, events.PreemptionPayload{
			Victim: v, By: by, ByJobID: plan.Job.ID, ByNamespace: plan.Job.Namespace, ByPriority: plan.Priority,
			NodeID: v.NodeID, PolicyVersion: e.Policy,
		})
	}
	if len(d.Victims) == 0 {
		return
	}
	d.Reason = reasonOf(&d)
	n.add(events.Decision, "PreemptionDecided", plan.Job.Namespace, by, d)
}

// victim is what there is to say of who was evicted; ok is false for one that
// had ended by itself.
func (n *narrator) victim(e model.Eviction) (v events.Victim, ok bool) {
	a := n.a.Snap.Alloc(e.AllocID)
	if a == nil || a.PreemptedBy != e.By {
		return v, false
	}
	return events.Victim{
		AllocID: a.ID, JobID: a.Job.ID, Namespace: a.Job.Namespace, Group: a.Group.Name, NodeID: a.NodeID,
		Priority: a.Job.Priority, LostWork: a.Group.LostWork(a.Age(n.a.Entry.Time)), Reason: a.DesiredReason,
	}, true
}

func reasonOf(d *events.DecisionPayload) string {
	highest, lost := d.Victims[0].Priority, int64(0)
	for _, v := range d.Victims {
		highest, lost = max(highest, v.Priority), lost+v.LostWork
	}
	noun := "allocation"
	if len(d.Victims) > 1 {
		noun = "allocations"
	}
	return fmt.Sprintf("no node had room for priority %d; %d %s of priority %d or less made it, losing %.0f s of work",
		d.Priority, len(d.Victims), noun, highest, float64(lost)/1e9)
}

// DecisionQuery picks decisions.
type DecisionQuery struct {
	Before    uint64 // only those of a lower index; 0: all
	Limit     int    // at most so many; default: 100
	Namespace string // of the job that was placed; "": any
	JobID     string // of the job that was placed; "": any
	// Concerns is a job or a binding that was placed or lost something; zero: any.
	Concerns model.JobKey
}

func (q *DecisionQuery) picks(d *Decision) bool {
	return (q.Before == 0 || d.Index < q.Before) && (q.Namespace == "" || d.Namespace == q.Namespace) &&
		(q.JobID == "" || d.JobID == q.JobID) && (q.Concerns == model.JobKey{} || d.concerns(q.Concerns))
}

// concerns is whether the decision is for a job or a binding, or at its expense.
func (d *Decision) concerns(key model.JobKey) bool {
	return d.Namespace == key.Namespace && d.JobID == key.ID || slices.ContainsFunc(d.Victims, func(v events.Victim) bool {
		return v.Namespace == key.Namespace && v.JobID == key.ID
	})
}

// Decisions lists preemption decisions, the newest first.
func (s *Server) Decisions(ctx context.Context, q DecisionQuery) ([]*Decision, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	if s.cfg.History == nil {
		return s.teller.recent(&q), nil
	}
	return s.recorded(ctx, &q)
}

// recent is the decisions that are in memory.
func (t *teller) recent(q *DecisionQuery) []*Decision {
	t.newest.Lock()
	defer t.newest.Unlock()
	var list []*Decision
	for d := range t.newest.backward {
		if len(list) == q.Limit {
			break
		}
		if q.picks(d) {
			list = append(list, d)
		}
	}
	return list
}

// recorded is the decisions that are in the history.
func (s *Server) recorded(ctx context.Context, q *DecisionQuery) ([]*Decision, error) {
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
		records, err := s.cfg.History.List(query)
		if err != nil {
			return nil, apierror.New(apierror.CodeInternal, "the history of decisions cannot be read: %v", err)
		}
		for i := range records {
			var d Decision
			if err := json.Unmarshal(records[i].Data, &d); err != nil {
				return nil, apierror.New(apierror.CodeInternal, "the history of decisions is damaged at index %d: %v", records[i].Index, err)
			}
			if q.picks(&d) {
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
