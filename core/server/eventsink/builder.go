package eventsink

import (
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
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
	builders.Of(a.Entry.Command)(&b, a.Entry.Command)
	for _, e := range a.Result.Evals {
		b.eval(e)
	}
	b.list = append(b.list, auditEvents(a)...)
	return b.list
}

func (b *eventBuilder) add(topic events.Topic, kind, namespace, key string, payload any) {
	b.list = append(b.list, events.Event{
		Index: b.a.Index, Time: b.a.Entry.Time, Topic: topic, Type: kind, Namespace: namespace, Key: key, Payload: payload,
	})
}

func (b *eventBuilder) registerJob(c *replication.RegisterJob) {
	b.job("JobRegistered", c.Job.Key(), c.Job)
	if c.Batch != nil {
		b.batch(c.Batch)
	}
}

func (b *eventBuilder) stopAllocs(c *replication.StopAllocs) {
	for _, id := range c.IDs {
		b.alloc("AllocationStopped", id)
	}
}

func (b *eventBuilder) updateAllocs(c *replication.UpdateAllocs) {
	for _, u := range c.Updates {
		b.alloc("AllocationUpdated", u.AllocID)
	}
}

func (b *eventBuilder) registerNodes(c *replication.RegisterNodes) {
	for _, node := range c.Nodes {
		b.node("NodeRegistered", node.ID)
	}
	b.disconnectable("AllocationReturned", b.a.Result.Returned)
}

func (b *eventBuilder) changeNodes(c *replication.ChangeNodes) {
	for _, id := range c.IDs {
		b.node(nodeChangeType(&c.Change), id)
	}
	if c.Change.Status != nil && *c.Change.Status == model.NodeDown {
		b.disconnectable("AllocationUnknown", c.IDs)
	}
	b.disconnectable("AllocationReturned", b.a.Result.Returned)
}

func (b *eventBuilder) deleteNodes(c *replication.DeleteNodes) {
	for _, id := range c.IDs {
		b.add(events.Node, "NodeDeleted", "", id, events.NodePayload{NodeID: id})
	}
}

func (b *eventBuilder) loadPolicy(c *replication.LoadPolicy) {
	v := c.Version
	b.add(events.Policy, "PolicyLoaded", "", v.Name, events.PolicyPayload{Name: v.Name, Version: v.ID, Digest: v.Digest, OK: true})
}

func (b *eventBuilder) changePolicy(c *replication.ChangePolicy) {
	kind := map[replication.PolicyOp]string{
		replication.OpShadow: "PolicyShadowed", replication.OpUnshadow: "PolicyUnshadowed",
		replication.OpActivate: "PolicyActivated", replication.OpRollback: "PolicyRolledBack",
		replication.OpUnload: "PolicyUnloaded", replication.OpTrip: "PolicyTripped", replication.OpReset: "PolicyReset",
		replication.OpTrial: "PolicyTrialStarted", replication.OpBlock: "PolicyTrialBlockEnded",
	}[c.Op]
	b.add(events.Policy, kind, "", c.Name, events.PolicyPayload{
		Name: c.Name, Version: c.Version, Reason: c.Reason, OK: c.Op != replication.OpTrip, Actor: c.Actor,
	})
}

func (b *eventBuilder) setConfig(c *replication.SetConfig) {
	b.operator("SchedulerConfigChanged", "", fmt.Sprintf("algorithm %s, policy %q, broker paused %t", c.Config.Algorithm, c.Config.Policy, c.Config.BrokerPaused))
}

func (b *eventBuilder) collect(c *replication.Collect) {
	b.operator("GarbageCollected", "", strings.Join([]string{
		model.Counted(len(c.Evals), "evaluation", "evaluations"), model.Counted(len(c.Allocs), "allocation", "allocations"),
		model.Counted(len(c.Jobs), "job", "jobs"), model.Counted(len(c.Nodes), "node", "nodes"),
	}, ", "))
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
	b.job("JobStopped", c.Key, state.LastSpec(b.a.Snap, c.Key))
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
	if e.ModifyIndex == b.a.Index {
		for _, o := range e.NewObservations() {
			addObservation(b, e, o)
		}
	}
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
	case c.Drain != nil || c.Drained:
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

// auditEvents returns the event of the audit record that an entry stored.
func auditEvents(a *replication.Applied) []events.Event {
	if a.Snap == nil {
		return nil
	}
	list := a.Snap.AuditRecords()
	if len(list) == 0 || list[len(list)-1].Index != a.Index {
		return nil
	}
	r := list[len(list)-1]
	return []events.Event{{
		Index: a.Index, Time: r.Time, Topic: events.Operator, Type: "AuditRecorded", Key: r.Object,
		Payload: events.AuditPayload{Action: r.Action, Object: r.Object, Detail: r.Detail, Actor: r.Actor, ActorName: r.ActorName},
	}}
}
