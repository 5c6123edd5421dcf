package eventsink

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// batch adds the events of the committed groups of plans.
func (b *eventBuilder) batch(batch *apply.Batch) {
	dropped := map[apply.DroppedGroup]bool{}
	for _, d := range b.a.Result.Dropped {
		dropped[d] = true
	}
	for p := range batch.Plans {
		bp := &batch.Plans[p]
		for _, i := range bp.Groups {
			if !dropped[apply.DroppedGroup{Plan: p, Group: i}] {
				b.group(bp.Plan, &bp.Plan.Groups[i])
			}
		}
	}
	for _, id := range batch.Ineligible {
		b.node("NodeEligibility", id)
	}
}

func (b *eventBuilder) group(plan *model.Plan, g *model.CommitGroup) {
	for i := range g.Stops {
		kind := "AllocationStopped"
		if g.Stops[i].MovedTo != "" {
			kind = "AllocationMoved"
		}
		b.alloc(kind, g.Stops[i].AllocID)
	}
	for i := range g.Evictions {
		b.alloc("AllocationEvicted", g.Evictions[i].AllocID)
	}
	for _, a := range g.Updates {
		b.alloc("AllocationUpdated", a.ID)
	}
	for _, a := range g.Placements {
		b.alloc("AllocationPlaced", a.ID)
	}
	if len(g.Evictions) > 0 {
		b.decisions(plan, g)
	}
	b.assignments(plan, g)
}

// decisions adds one decision for each beneficiary of the evictions of a group, in the
// order of its first victim.
func (b *eventBuilder) decisions(plan *model.Plan, g *model.CommitGroup) {
	beneficiaries := make([]string, 0, 1)
	evictions := map[string][]model.Eviction{}
	for _, e := range g.Evictions {
		if evictions[e.By] == nil {
			beneficiaries = append(beneficiaries, e.By)
		}
		evictions[e.By] = append(evictions[e.By], e)
	}
	for _, by := range beneficiaries {
		b.decision(plan, g, by, evictions[by])
	}
}

// decision adds a decision and an event for each of its victims. Nothing is added if
// every victim had ended by itself.
func (b *eventBuilder) decision(plan *model.Plan, g *model.CommitGroup, by string, evictions []model.Eviction) {
	d := events.DecisionPayload{
		EvalID: plan.EvalID, JobID: plan.Job.ID, AllocID: by, Priority: plan.Priority, PolicyVersion: evictions[0].Policy,
		PlannedOn: plan.SnapshotIndex, PlannedAt: plan.Now,
	}
	for _, a := range g.Placements {
		if a.ID == by {
			d.Group, d.NodeID = a.Group.Name, a.NodeID
		}
	}
	for _, e := range evictions {
		v, ok := b.victim(e)
		if !ok {
			continue
		}
		d.Victims = append(d.Victims, v)
		b.add(events.Preemption, "AllocationPreempted", v.Namespace, v.AllocID, events.PreemptionPayload{
			Victim: v, By: by, ByJobID: plan.Job.ID, ByNamespace: plan.Job.Namespace, ByPriority: plan.Priority,
			NodeID: v.NodeID, PolicyVersion: e.Policy,
		})
	}
	if len(d.Victims) == 0 {
		return
	}
	d.Reason, d.Why = decisionReason(&d), decision.Why(choiceOf(g, by), b.a.Snap)
	b.add(events.Decision, "PreemptionDecided", plan.Job.Namespace, by, d)
}

// choiceOf returns the explanation of the evictions for a placement or claim, or nil if the
// plan has none.
func choiceOf(g *model.CommitGroup, by string) *model.Choice {
	for _, c := range g.Choices {
		if c.By == by {
			return c
		}
	}
	return nil
}

// victim returns the description of an evicted allocation, or false if the allocation
// had ended by itself.
func (b *eventBuilder) victim(e model.Eviction) (v events.Victim, ok bool) {
	a := b.a.Snap.Alloc(e.AllocID)
	if a == nil || a.PreemptedBy != e.By {
		return v, false
	}
	return events.Victim{
		AllocID: a.ID, JobID: a.Job.ID, Namespace: a.Job.Namespace, Group: a.Group.Name, NodeID: a.NodeID,
		Priority: a.Job.Priority, LostWork: a.Group.LostWork(a.Age(b.a.Entry.Time)), Reason: a.DesiredReason,
	}, true
}

func decisionReason(d *events.DecisionPayload) string {
	highest, lost := d.Victims[0].Priority, int64(0)
	for _, v := range d.Victims {
		highest, lost = max(highest, v.Priority), lost+v.LostWork
	}
	verb, end := "evicted", ""
	if d.Observed {
		verb, end = "would evict", "; nothing was evicted, because preemption is only observed"
	}
	return fmt.Sprintf("no node had enough free capacity for priority %d; %s %s of priority %d or less, losing %s%s",
		d.Priority, verb, model.Counted(len(d.Victims), "allocation", "allocations"), highest, model.LostWorkText(lost), end)
}

// addObservation adds a decision that was not carried out. Nothing is added if all of its
// victims have ended since.
func addObservation(b *eventBuilder, e *model.Evaluation, o *model.Observation) {
	d := events.DecisionPayload{
		EvalID: e.ID, JobID: e.JobID, Group: o.Group, NodeID: o.NodeID, Priority: e.Priority, PolicyVersion: o.Policy,
		PlannedOn: o.PlannedOn, PlannedAt: o.PlannedAt, Observed: true,
	}
	for _, id := range o.Victims {
		a := b.a.Snap.Alloc(id)
		if a == nil || !a.Live() {
			continue
		}
		d.Victims = append(d.Victims, events.Victim{
			AllocID: a.ID, JobID: a.Job.ID, Namespace: a.Job.Namespace, Group: a.Group.Name, NodeID: a.NodeID,
			Priority: a.Job.Priority, LostWork: a.Group.LostWork(a.Age(b.a.Entry.Time)), Reason: "would be evicted: preemption is only observed",
		})
	}
	if len(d.Victims) == 0 {
		return
	}
	d.Reason, d.Why = decisionReason(&d), decision.WhyObserved(o.Choice, b.a.Snap)
	b.add(events.Decision, "PreemptionObserved", e.Namespace, e.ID, d)
}
