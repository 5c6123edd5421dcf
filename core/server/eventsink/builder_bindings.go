package eventsink

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
)

func (b *eventBuilder) upsertClusters(c *replication.UpsertClusters) {
	for _, cluster := range c.Clusters {
		b.cluster("ClusterRegistered", cluster.ID)
	}
}

func (b *eventBuilder) changeClusters(c *replication.ChangeClusters) {
	for i := range c.Changes {
		b.cluster(clusterChangeType(&c.Changes[i]), c.Changes[i].ID)
	}
}

func (b *eventBuilder) deleteCluster(c *replication.DeleteCluster) {
	b.add(events.Cluster, "ClusterDeleted", "", c.ID, events.ClusterPayload{ClusterID: c.ID})
}

func (b *eventBuilder) upsertBinding(c *replication.UpsertBinding) {
	b.binding("BindingRegistered", c.Binding.Key())
	if c.Binding.HasMissingClass() {
		b.binding("PriorityClassMissing", c.Binding.Key())
	}
}

func (b *eventBuilder) deleteBinding(c *replication.DeleteBinding) {
	b.add(events.Binding, "BindingDeleted", c.Key.Namespace, c.Key.ID, events.BindingPayload{BindingID: c.Key.ID, Stopped: true})
}

func (b *eventBuilder) endAssignments(c *replication.EndAssignments) {
	for _, id := range c.IDs {
		b.assignment("AssignmentEnded", id)
	}
}

func (b *eventBuilder) updateAssignments(c *replication.UpdateAssignments) {
	for i := range c.Updates {
		b.assignmentUpdated(c.Updates[i].ID, c.Updates[i].Client, c.Updates[i].Text)
	}
}

func (b *eventBuilder) stopAssignments(c *replication.StopAssignments) {
	for _, id := range c.IDs {
		b.assignment("AssignmentWithdrawn", id)
	}
}

func clusterChangeType(c *model.ClusterChange) string {
	switch {
	case c.Down:
		return "ClusterDown"
	case c.Reports:
		return "ClusterReported"
	}
	return "ClusterReady"
}

func (b *eventBuilder) cluster(kind, id string) {
	if c := b.a.Snap.Cluster(id); c != nil {
		b.add(events.Cluster, kind, "", id, events.ClusterPayload{ClusterID: id, Down: c.Down, Agent: c.HasAgent()})
	}
}

func (b *eventBuilder) binding(kind string, key model.JobKey) {
	x := b.a.Snap.Binding(key)
	if x == nil {
		return
	}
	b.add(events.Binding, kind, key.Namespace, key.ID, events.BindingPayload{
		BindingID: x.ID, PriorityClass: x.PriorityClass, Priority: x.Priority, Replicas: x.Replicas,
		Version: x.Version, ModifyIndex: x.ModifyIndex, Stopped: x.Stopped, Warning: x.ClassWarning(),
	})
}

// assignment adds an event of an assignment as it is in the state. If it is gone, the event
// holds only the fields that follow from its ID.
func (b *eventBuilder) assignment(kind, id string) {
	a := b.a.Snap.Assignment(id)
	if a == nil {
		key, cluster, ok := model.ParseAssignmentID(id)
		if ok {
			b.add(events.Assignment, kind, key.Namespace, id, events.AssignmentPayload{
				AssignmentID: id, BindingID: key.ID, ClusterID: cluster, Gone: true,
			})
		}
		return
	}
	b.add(events.Assignment, kind, a.Binding.Namespace, id, events.AssignmentPayload{
		AssignmentID: id, BindingID: a.Binding.ID, ClusterID: a.ClusterID, EvalID: a.EvalID, Replicas: a.Replicas, Ready: a.Ready,
		Desired: a.Desired.String(), DesiredReason: a.DesiredReason, Client: a.Client.String(), ClientText: a.ClientText,
		PreemptedBy: a.PreemptedBy, Gone: !a.HoldsCapacity(),
	})
}

// assignmentUpdated adds an event of an update. If the update ended the assignment,
// its status and text are those that the cluster reported.
func (b *eventBuilder) assignmentUpdated(id string, status model.ClientStatus, text string) {
	before := len(b.list)
	b.assignment("AssignmentUpdated", id)
	if len(b.list) == before {
		return
	}
	last := &b.list[len(b.list)-1]
	if p := last.Payload.(events.AssignmentPayload); p.Gone {
		p.Client, p.ClientText = status.String(), text
		last.Payload = p
	}
}

// assignments adds the events of the assignments of a group, and a decision for each
// claim that evicts others.
func (b *eventBuilder) assignments(plan *model.Plan, g *model.CommitGroup) {
	victims := map[string][]model.Withdrawal{}
	for _, w := range g.Withdrawals {
		if w.By == "" {
			b.assignment("AssignmentWithdrawn", w.AssignmentID)
			continue
		}
		b.assignment("AssignmentEvicted", w.AssignmentID)
		victims[w.By] = append(victims[w.By], w)
	}
	for _, a := range g.Assignments {
		b.assignment("AssignmentPlaced", a.ID)
	}
	for _, c := range g.Claims {
		if len(victims[c.ID]) > 0 {
			b.bindingDecision(plan, g, c, victims[c.ID])
		}
	}
}

// bindingDecision is decision for the claim of a binding on a member cluster.
func (b *eventBuilder) bindingDecision(plan *model.Plan, g *model.CommitGroup, c *model.Claim, withdrawn []model.Withdrawal) {
	d := events.DecisionPayload{
		EvalID: plan.EvalID, JobID: plan.Job.ID, AllocID: c.ID, ClusterID: c.ClusterID, Priority: plan.Priority,
		PolicyVersion: withdrawn[0].Policy, PlannedOn: plan.SnapshotIndex, PlannedAt: plan.Now,
	}
	for _, w := range withdrawn {
		v, ok := b.assignmentVictim(&w)
		if !ok {
			continue
		}
		d.Victims = append(d.Victims, v)
		b.add(events.Preemption, "AssignmentPreempted", v.Namespace, v.AllocID, events.PreemptionPayload{
			Victim: v, By: c.ID, ByJobID: plan.Job.ID, ByNamespace: plan.Job.Namespace, ByPriority: plan.Priority,
			ClusterID: v.ClusterID, PolicyVersion: w.Policy,
		})
	}
	if len(d.Victims) == 0 {
		return
	}
	highest, noun := d.Victims[0].Priority, "binding"
	for _, v := range d.Victims {
		highest = max(highest, v.Priority)
	}
	if len(d.Victims) > 1 {
		noun = "bindings"
	}
	d.Reason = fmt.Sprintf("no cluster had enough free capacity for priority %d; evicted %d %s of priority %d or less from %s",
		d.Priority, len(d.Victims), noun, highest, c.ClusterID)
	d.Why = decision.Why(choiceOf(g, c.ID), b.a.Snap)
	b.add(events.Decision, "PreemptionDecided", plan.Job.Namespace, c.ID, d)
}

// assignmentVictim returns the description of evicted replicas, or false if they had
// ended by themselves.
func (b *eventBuilder) assignmentVictim(w *model.Withdrawal) (v events.Victim, ok bool) {
	a := b.a.Snap.Assignment(w.AssignmentID)
	if w.Remaining > 0 { // the evicted replicas are an assignment of their own
		a = b.a.Snap.Assignment(model.PartID(w.AssignmentID, w.By))
	}
	if a == nil || a.PreemptedBy != w.By {
		return v, false
	}
	v = events.Victim{
		AllocID: a.ID, JobID: a.Binding.ID, Namespace: a.Binding.Namespace, ClusterID: a.ClusterID, Replicas: a.Replicas,
		LostWork: a.LostWork(b.a.Entry.Time, 0), Reason: a.DesiredReason,
	}
	if x := b.a.Snap.Binding(a.Binding); x != nil {
		v.Priority, v.LostWork = x.Priority, a.LostWork(b.a.Entry.Time, x.Checkpoint)
	}
	return v, true
}
