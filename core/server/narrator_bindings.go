package server

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
)

// tellBindings says what a command did to member clusters and bindings.
func (n *narrator) tellBindings(command replication.Command) {
	switch c := command.(type) {
	case *replication.UpsertClusters:
		for _, cluster := range c.Clusters {
			n.cluster("ClusterRegistered", cluster.ID)
		}
	case *replication.ChangeClusters:
		for i := range c.Changes {
			n.cluster(clusterChange(&c.Changes[i]), c.Changes[i].ID)
		}
	case *replication.DeleteCluster:
		n.add(events.Cluster, "ClusterDeleted", "", c.ID, events.ClusterPayload{ClusterID: c.ID})
	case *replication.UpsertBinding:
		n.binding("BindingRegistered", c.Binding.Key())
		if c.Binding.HasMissingClass() {
			n.binding("PriorityClassMissing", c.Binding.Key())
		}
	case *replication.StopBinding:
		n.binding("BindingStopped", c.Key)
	case *replication.DeleteBinding:
		n.add(events.Binding, "BindingDeleted", c.Key.Namespace, c.Key.ID, events.BindingPayload{BindingID: c.Key.ID, Stopped: true})
	case *replication.EndAssignments:
		for _, id := range c.IDs {
			n.assignment("AssignmentEnded", id)
		}
	case *replication.UpdateAssignments:
		for i := range c.Updates {
			n.assignmentUpdated(c.Updates[i].ID, c.Updates[i].Client, c.Updates[i].Text)
		}
	case *replication.StopAssignments:
		for _, id := range c.IDs {
			n.assignment("AssignmentWithdrawn", id)
		}
	}
}

func clusterChange(c *model.ClusterChange) string {
	switch {
	case c.Down:
		return "ClusterDown"
	case c.Reports:
		return "ClusterReported"
	}
	return "ClusterReady"
}

func (n *narrator) cluster(kind, id string) {
	if c := n.a.Snap.Cluster(id); c != nil {
		n.add(events.Cluster, kind, "", id, events.ClusterPayload{ClusterID: id, Down: c.Down, Agent: hasAgent(c)})
	}
}

func (n *narrator) binding(kind string, key model.JobKey) {
	b := n.a.Snap.Binding(key)
	if b == nil {
		return
	}
	n.add(events.Binding, kind, key.Namespace, key.ID, events.BindingPayload{
		BindingID: b.ID, PriorityClass: b.PriorityClass, Priority: b.Priority, Replicas: b.Replicas,
		Version: b.Version, ModifyIndex: b.ModifyIndex, Stopped: b.Stopped, Warning: b.ClassWarning(),
	})
}

// assignment tells of an assignment as it is now; where it is gone, what its id
// says.
func (n *narrator) assignment(kind, id string) {
	a := n.a.Snap.Assignment(id)
	if a == nil {
		key, cluster, ok := model.ParseAssignmentID(id)
		if ok {
			n.add(events.Assignment, kind, key.Namespace, id, events.AssignmentPayload{
				AssignmentID: id, BindingID: key.ID, ClusterID: cluster, Gone: true,
			})
		}
		return
	}
	n.add(events.Assignment, kind, a.Binding.Namespace, id, events.AssignmentPayload{
		AssignmentID: id, BindingID: a.Binding.ID, ClusterID: a.ClusterID, EvalID: a.EvalID, Replicas: a.Replicas, Ready: a.Ready,
		Desired: a.Desired.String(), DesiredReason: a.DesiredReason, Client: a.Client.String(), ClientText: a.ClientText,
		PreemptedBy: a.PreemptedBy, Gone: !a.HoldsCapacity(),
	})
}

// assignmentUpdated is assignment with what the cluster said of one that is gone
// by it.
func (n *narrator) assignmentUpdated(id string, status model.ClientStatus, text string) {
	before := len(n.list)
	n.assignment("AssignmentUpdated", id)
	if len(n.list) == before {
		return
	}
	last := &n.list[len(n.list)-1]
	if p := last.Payload.(events.AssignmentPayload); p.Gone {
		p.Client, p.ClientText = status.String(), text
		last.Payload = p
	}
}

// assigned tells what a group of a plan does to assignments, and who makes room
// for whom.
func (n *narrator) assigned(plan *model.Plan, g *model.CommitGroup) {
	victims := map[string][]model.Withdrawal{}
	for _, w := range g.Withdrawals {
		if w.By == "" {
			n.assignment("AssignmentWithdrawn", w.AssignmentID)
			continue
		}
		n.assignment("AssignmentEvicted", w.AssignmentID)
		victims[w.By] = append(victims[w.By], w)
	}
	for _, a := range g.Assignments {
		n.assignment("AssignmentPlaced", a.ID)
	}
	for _, c := range g.Claims {
		if len(victims[c.ID]) > 0 {
			n.bindingDecision(plan, c, victims[c.ID])
		}
	}
}

// bindingDecision is decision for a claim of a binding on a member cluster.
func (n *narrator) bindingDecision(plan *model.Plan, c *model.Claim, withdrawn []model.Withdrawal) {
	d := events.DecisionPayload{
		EvalID: plan.EvalID, JobID: plan.Job.ID, AllocID: c.ID, ClusterID: c.ClusterID, Priority: plan.Priority,
		PolicyVersion: withdrawn[0].Policy,
	}
	for _, w := range withdrawn {
		v, ok := n.assignmentVictim(&w)
		if !ok {
			continue
		}
		d.Victims = append(d.Victims, v)
		n.add(events.Preemption, "AssignmentPreempted", v.Namespace, v.AllocID, events.PreemptionPayload{
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
	d.Reason = fmt.Sprintf("no cluster had room for priority %d; %d %s of priority %d or less on %s made it",
		d.Priority, len(d.Victims), noun, highest, c.ClusterID)
	n.add(events.Decision, "PreemptionDecided", plan.Job.Namespace, c.ID, d)
}

// assignmentVictim is what there is to say of replicas that were evicted; ok is
// false for what had ended by itself.
func (n *narrator) assignmentVictim(w *model.Withdrawal) (v events.Victim, ok bool) {
	a := n.a.Snap.Assignment(w.AssignmentID)
	if w.Remaining > 0 { // those that go are a part of their own
		a = n.a.Snap.Assignment(model.PartID(w.AssignmentID, w.By))
	}
	if a == nil || a.PreemptedBy != w.By {
		return v, false
	}
	v = events.Victim{
		AllocID: a.ID, JobID: a.Binding.ID, Namespace: a.Binding.Namespace, ClusterID: a.ClusterID, Replicas: a.Replicas,
		LostWork: a.LostWork(n.a.Entry.Time, 0), Reason: a.DesiredReason,
	}
	if b := n.a.Snap.Binding(a.Binding); b != nil {
		v.Priority, v.LostWork = b.Priority, a.LostWork(n.a.Entry.Time, b.Checkpoint)
	}
	return v, true
}
