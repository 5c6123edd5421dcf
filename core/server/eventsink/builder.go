package eventsink

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// eventBuilder builds the events of one entry.
type eventBuilder struct {
	a    *replication.Applied
	list []events.Event
}

// eventsOf returns the events of an entry that took effect: those of its command, then
// those of the evaluations that it created or updated.
func eventsOf(a *replication.Applied) []events.Event {
	b := eventBuilder{a: a}
	b.command()
	for _, e := range a.Result.Evals {
		b.eval(e)
	}
	return b.list
}

func (b *eventBuilder) add(topic events.Topic, kind, namespace, key string, payload any) {
	b.list = append(b.list, events.Event{
		Index: b.a.Index, Time: b.a.Entry.Time, Topic: topic, Type: kind, Namespace: namespace, Key: key, Payload: payload,
	})
}

// command adds the events of the command.
func (b *eventBuilder) command() {
	switch c := b.a.Entry.Command.(type) {
	case *replication.RegisterJob:
		b.job("JobRegistered", c.Job.Key(), c.Job)
		if c.Batch != nil {
			b.batch(c.Batch)
		}
	case *replication.StopJob:
		b.stopJob(c)
	case *replication.StopAllocs:
		for _, id := range c.IDs {
			b.alloc("AllocationStopped", id)
		}
	case *replication.ApplyPlans:
		b.batch(c.Batch)
	case *replication.UpdateAllocs:
		for _, u := range c.Updates {
			b.alloc("AllocationUpdated", u.AllocID)
		}
	case *replication.RegisterNodes:
		for _, node := range c.Nodes {
			b.node("NodeRegistered", node.ID)
		}
		b.disconnectable("AllocationReturned", b.a.Result.Returned)
	case *replication.ChangeNodes:
		for _, id := range c.IDs {
			b.node(nodeChangeType(&c.Change), id)
		}
		if c.Change.Status != nil && *c.Change.Status == model.NodeDown {
			b.disconnectable("AllocationUnknown", c.IDs)
		}
		b.disconnectable("AllocationReturned", b.a.Result.Returned)
	case *replication.DeleteNodes:
		for _, id := range c.IDs {
			b.add(events.Node, "NodeDeleted", "", id, events.NodePayload{NodeID: id})
		}
	default:
		b.operatorCommand()
	}
}

// operatorCommand adds the events of a command that operators or servers issue.
func (b *eventBuilder) operatorCommand() {
	switch c := b.a.Entry.Command.(type) {
	case *replication.LoadPolicy:
		v := c.Version
		b.add(events.Policy, "PolicyLoaded", "", v.Name, events.PolicyPayload{Name: v.Name, Version: v.ID, Digest: v.Digest, OK: true})
	case *replication.CheckPolicy:
		b.policyChecked(c)
	case *replication.ChangePolicy:
		kind := map[replication.PolicyOp]string{
			replication.OpShadow: "PolicyShadowed", replication.OpUnshadow: "PolicyUnshadowed",
			replication.OpActivate: "PolicyActivated", replication.OpRollback: "PolicyRolledBack",
			replication.OpUnload: "PolicyUnloaded", replication.OpTrip: "PolicyTripped", replication.OpReset: "PolicyReset",
		}[c.Op]
		b.add(events.Policy, kind, "", c.Name, events.PolicyPayload{
			Name: c.Name, Version: c.Version, Reason: c.Reason, OK: c.Op != replication.OpTrip,
		})
	case *replication.Bootstrap:
		b.operator("ClusterNamed", c.ClusterID, "")
	case *replication.SetVersion:
		b.operator("ClusterVersionRaised", "", fmt.Sprint(c.Version))
	case *replication.SetConfig:
		b.operator("SchedulerConfigChanged", "", fmt.Sprintf("algorithm %s, policy %q, broker paused %t", c.Config.Algorithm, c.Config.Policy, c.Config.BrokerPaused))
	case *replication.UpsertPriorityClass:
		b.operator("PriorityClassPut", c.Class.Name, fmt.Sprintf("value %d", c.Class.Value))
	case *replication.UpsertBudget:
		b.operator("BudgetPut", c.Budget.Key().String(), "")
	case *replication.DeleteBudget:
		b.operator("BudgetDeleted", c.Key.String(), "")
	case *replication.DeletePriorityClass:
		b.operator("PriorityClassDeleted", c.Name, "")
	case *replication.UpsertClusters, *replication.ChangeClusters, *replication.DeleteCluster, *replication.UpsertBinding,
		*replication.StopBinding, *replication.DeleteBinding, *replication.EndAssignments, *replication.UpdateAssignments,
		*replication.StopAssignments:
		b.bindingCommand(c)
	case *replication.Collect:
		b.operator("GarbageCollected", "", fmt.Sprintf("%d evaluations, %d allocations, %d jobs, %d nodes",
			len(c.Evals), len(c.Allocs), len(c.Jobs), len(c.Nodes)))
	case *replication.PutToken:
		b.operator("TokenCreated", c.Token.Accessor, c.Token.Name)
	case *replication.DeleteToken:
		b.operator("TokenDeleted", c.Accessor, "")
	}
}

func (b *eventBuilder) operator(kind, name, detail string) {
	b.add(events.Operator, kind, "", name, events.OperatorPayload{What: kind, Name: name, Detail: detail})
}

func (b *eventBuilder) policyChecked(c *replication.CheckPolicy) {
	p := events.PolicyPayload{Version: c.Version, Server: c.Server, OK: c.Check.OK, Reason: c.Check.Error}
	if v := b.a.Snap.PolicyVersion(c.Version); v != nil {
		p.Name, p.Digest = v.Name, v.Digest
	}
	b.add(events.Policy, "PolicyChecked", "", p.Name, p)
}

// job adds an event of a job as it is in the state, or as in fallback if it is gone.
func (b *eventBuilder) job(kind string, key model.JobKey, fallback *model.Job) {
	p := events.JobPayload{JobID: key.ID}
	j := b.a.Snap.Job(key)
	if j == nil {
		j = fallback
	}
	if j != nil {
		p.Type, p.PriorityClass, p.Priority = j.Type.String(), j.PriorityClass, j.Priority
		p.Version, p.JobModifyIndex, p.Stopped = j.Version, j.ModifyIndex, j.Stopped
	}
	b.add(events.Job, kind, key.Namespace, key.ID, p)
}

func (b *eventBuilder) stopJob(c *replication.StopJob) {
	b.job("JobStopped", c.Key, nil)
	last := &b.list[len(b.list)-1]
	p := last.Payload.(events.JobPayload)
	p.Stopped, p.Purged = true, c.Purge
	last.Payload = p
}

func (b *eventBuilder) eval(e *model.Evaluation) {
	kind := "EvaluationUpdated"
	if e.CreateIndex == b.a.Index {
		kind = "EvaluationCreated"
	}
	b.add(events.Evaluation, kind, e.Namespace, e.ID, events.EvaluationPayload{
		EvalID: e.ID, JobID: e.JobID, Type: e.Type.String(), TriggeredBy: string(e.TriggeredBy), Status: e.Status.String(),
		StatusText: e.StatusText, SupersededBy: e.SupersededBy, Blocked: e.Blocked, Previous: e.Previous,
		Priority: e.Priority, Queued: e.Queued,
	})
}

func (b *eventBuilder) node(kind, id string) {
	node := b.a.Snap.Node(id)
	if node == nil {
		return
	}
	b.add(events.Node, kind, "", id, events.NodePayload{
		NodeID: id, Name: node.Name, Datacenter: node.Datacenter, Status: node.Status.String(),
		Eligible: !node.Ineligible, Drain: node.Drain,
	})
}

// nodeChangeType returns the event type of a change, which is that of its most
// significant part.
func nodeChangeType(c *apply.NodeChange) string {
	switch {
	case c.Status != nil && *c.Status == model.NodeDown:
		return "NodeDown"
	case c.Status != nil:
		return "NodeReady"
	case c.Drain != nil:
		return "NodeDrain"
	case len(c.Taint)+len(c.Untaint) > 0:
		return "NodeTaints"
	default:
		return "NodeEligibility"
	}
}

func (b *eventBuilder) alloc(kind, id string) {
	a := b.a.Snap.Alloc(id)
	if a == nil {
		return
	}
	b.add(events.Allocation, kind, a.Job.Namespace, id, events.AllocationPayload{
		AllocID: id, Name: model.AllocName(a.Group, a.Index, a.Incarnation), JobID: a.Job.ID, Group: a.Group.Name,
		NodeID: a.NodeID, EvalID: a.EvalID, Desired: a.Desired.String(), DesiredReason: a.DesiredReason,
		Client: model.ClientStatusText(a, b.a.Snap.Node(a.NodeID)), ClientText: a.ClientText, PreemptedBy: a.PreemptedBy,
	})
}

// disconnectable adds an event for each allocation that survives a disconnect, on
// those of the nodes that this entry changed.
func (b *eventBuilder) disconnectable(kind string, nodes []string) {
	for _, id := range nodes {
		if node := b.a.Snap.Node(id); node == nil || node.ModifyIndex != b.a.Index {
			continue
		}
		for _, a := range b.a.Snap.AppendNodeAllocs(nil, id) {
			if a.Group.Disconnect != nil {
				b.alloc(kind, a.ID)
			}
		}
	}
}
