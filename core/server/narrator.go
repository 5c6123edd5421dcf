package server

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// narrator puts one entry into events.
type narrator struct {
	a    *replication.Applied
	list []events.Event
}

func (n *narrator) add(topic events.Topic, kind, namespace, key string, payload any) {
	n.list = append(n.list, events.Event{
		Index: n.a.Index, Time: n.a.Entry.Time, Topic: topic, Type: kind, Namespace: namespace, Key: key, Payload: payload,
	})
}

// tell says what the command did, and then which evaluations came of it.
func (n *narrator) tell() {
	switch c := n.a.Entry.Command.(type) {
	case *replication.RegisterJob:
		n.job("JobRegistered", c.Job.Key(), c.Job)
		if c.Batch != nil {
			n.batch(c.Batch)
		}
	case *replication.StopJob:
		n.stopJob(c)
	case *replication.StopAllocs:
		n.allocs("AllocationStopped", c.IDs)
	case *replication.ApplyPlans:
		n.batch(c.Batch)
	case *replication.UpdateAllocs:
		for _, u := range c.Updates {
			n.alloc("AllocationUpdated", u.AllocID)
		}
	case *replication.RegisterNodes:
		for _, node := range c.Nodes {
			n.node("NodeRegistered", node.ID)
		}
		n.kept("AllocationReturned", n.a.Result.Returned)
	case *replication.ChangeNodes:
		for _, id := range c.IDs {
			n.node(nodeChange(&c.Change), id)
		}
		if c.Change.Status != nil && *c.Change.Status == model.NodeDown {
			n.kept("AllocationUnknown", c.IDs)
		}
		n.kept("AllocationReturned", n.a.Result.Returned)
	case *replication.DeleteNodes:
		for _, id := range c.IDs {
			n.add(events.Node, "NodeDeleted", "", id, events.NodePayload{NodeID: id})
		}
	default:
		n.tellOperator()
	}
	for _, e := range n.a.Result.Evals {
		n.eval(e)
	}
}

func (n *narrator) tellOperator() {
	switch c := n.a.Entry.Command.(type) {
	case *replication.LoadPolicy:
		v := c.Version
		n.add(events.Policy, "PolicyLoaded", "", v.Name, events.PolicyPayload{Name: v.Name, Version: v.ID, Digest: v.Digest, OK: true})
	case *replication.CheckPolicy:
		n.policyChecked(c)
	case *replication.ChangePolicy:
		kind := map[replication.PolicyOp]string{
			replication.OpShadow: "PolicyShadowed", replication.OpUnshadow: "PolicyUnshadowed",
			replication.OpActivate: "PolicyActivated", replication.OpRollback: "PolicyRolledBack",
			replication.OpUnload: "PolicyUnloaded", replication.OpTrip: "PolicyTripped", replication.OpReset: "PolicyReset",
		}[c.Op]
		n.add(events.Policy, kind, "", c.Name, events.PolicyPayload{
			Name: c.Name, Version: c.Version, Reason: c.Reason, OK: c.Op != replication.OpTrip,
		})
	case *replication.Bootstrap:
		n.operator("ClusterNamed", c.ClusterID, "")
	case *replication.SetVersion:
		n.operator("ClusterVersionRaised", "", fmt.Sprint(c.Version))
	case *replication.SetConfig:
		n.operator("SchedulerConfigChanged", "", fmt.Sprintf("algorithm %s, policy %q, broker paused %t", c.Config.Algorithm, c.Config.Policy, c.Config.BrokerPaused))
	case *replication.UpsertPriorityClass:
		n.operator("PriorityClassPut", c.Class.Name, fmt.Sprintf("value %d", c.Class.Value))
	case *replication.UpsertBudget:
		n.operator("BudgetPut", c.Budget.Key().String(), "")
	case *replication.DeleteBudget:
		n.operator("BudgetDeleted", c.Key.String(), "")
	case *replication.DeletePriorityClass:
		n.operator("PriorityClassDeleted", c.Name, "")
	case *replication.UpsertClusters, *replication.ChangeClusters, *replication.DeleteCluster, *replication.UpsertBinding,
		*replication.StopBinding, *replication.DeleteBinding, *replication.EndAssignments, *replication.UpdateAssignments,
		*replication.StopAssignments:
		n.tellBindings(c)
	case *replication.Collect:
		n.operator("GarbageCollected", "", fmt.Sprintf("%d evaluations, %d allocations, %d jobs, %d nodes",
			len(c.Evals), len(c.Allocs), len(c.Jobs), len(c.Nodes)))
	case *replication.PutToken:
		n.operator("TokenCreated", c.Token.Accessor, c.Token.Name)
	case *replication.DeleteToken:
		n.operator("TokenDeleted", c.Accessor, "")
	}
}

func (n *narrator) operator(kind, name, detail string) {
	n.add(events.Operator, kind, "", name, events.OperatorPayload{What: kind, Name: name, Detail: detail})
}

func (n *narrator) policyChecked(c *replication.CheckPolicy) {
	p := events.PolicyPayload{Version: c.Version, Server: c.Server, OK: c.Check.OK, Reason: c.Check.Error}
	if v := n.a.Snap.PolicyVersion(c.Version); v != nil {
		p.Name, p.Digest = v.Name, v.Digest
	}
	n.add(events.Policy, "PolicyChecked", "", p.Name, p)
}

// job tells of a job as it is now, or where it is gone as it was.
func (n *narrator) job(kind string, key model.JobKey, was *model.Job) {
	p := events.JobPayload{JobID: key.ID}
	j := n.a.Snap.Job(key)
	if j == nil {
		j = was
	}
	if j != nil {
		p.Type, p.PriorityClass, p.Priority = j.Type.String(), j.PriorityClass, j.Priority
		p.Version, p.JobModifyIndex, p.Stopped = j.Version, j.ModifyIndex, j.Stopped
	}
	n.add(events.Job, kind, key.Namespace, key.ID, p)
}

func (n *narrator) stopJob(c *replication.StopJob) {
	n.job("JobStopped", c.Key, nil)
	last := &n.list[len(n.list)-1]
	p := last.Payload.(events.JobPayload)
	p.Stopped, p.Purged = true, c.Purge
	last.Payload = p
}

func (n *narrator) eval(e *model.Evaluation) {
	kind := "EvaluationUpdated"
	if e.CreateIndex == n.a.Index {
		kind = "EvaluationCreated"
	}
	n.add(events.Evaluation, kind, e.Namespace, e.ID, events.EvaluationPayload{
		EvalID: e.ID, JobID: e.JobID, Type: e.Type.String(), TriggeredBy: string(e.TriggeredBy), Status: e.Status.String(),
		StatusText: e.StatusText, SupersededBy: e.SupersededBy, Blocked: e.Blocked, Previous: e.Previous,
		Priority: e.Priority, Queued: e.Queued,
	})
}

func (n *narrator) node(kind, id string) {
	node := n.a.Snap.Node(id)
	if node == nil {
		return
	}
	n.add(events.Node, kind, "", id, events.NodePayload{
		NodeID: id, Name: node.Name, Datacenter: node.Datacenter, Status: node.Status.String(),
		Eligible: !node.Ineligible, Drain: node.Drain,
	})
}

// nodeChange names a change by what is the most of it.
func nodeChange(c *state.NodeChange) string {
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

func (n *narrator) allocs(kind string, ids []string) {
	for _, id := range ids {
		n.alloc(kind, id)
	}
}

func (n *narrator) alloc(kind, id string) {
	a := n.a.Snap.Alloc(id)
	if a == nil {
		return
	}
	n.add(events.Allocation, kind, a.Job.Namespace, id, events.AllocationPayload{
		AllocID: id, Name: model.AllocName(a.Group, a.Index, a.Incarnation), JobID: a.Job.ID, Group: a.Group.Name,
		NodeID: a.NodeID, EvalID: a.EvalID, Desired: a.Desired.String(), DesiredReason: a.DesiredReason,
		Client: model.ClientStatusText(a, n.a.Snap.Node(a.NodeID)), ClientText: a.ClientText, PreemptedBy: a.PreemptedBy,
	})
}

// kept tells of what is kept for nodes while they are silent, where this entry
// changed them.
func (n *narrator) kept(kind string, nodes []string) {
	for _, id := range nodes {
		if node := n.a.Snap.Node(id); node == nil || node.ModifyIndex != n.a.Index {
			continue
		}
		for _, a := range n.a.Snap.AppendNodeAllocs(nil, id) {
			if a.Group.Disconnect != nil {
				n.alloc(kind, a.ID)
			}
		}
	}
}

// batch tells what of plans was committed.
func (n *narrator) batch(b *state.Batch) {
	dropped := map[state.DroppedGroup]bool{}
	for _, d := range n.a.Result.Dropped {
		dropped[d] = true
	}
	for p := range b.Plans {
		bp := &b.Plans[p]
		for _, i := range bp.Groups {
			if !dropped[state.DroppedGroup{Plan: p, Group: i}] {
				n.group(bp.Plan, &bp.Plan.Groups[i])
			}
		}
	}
	for _, id := range b.Ineligible {
		n.node("NodeEligibility", id)
	}
}

func (n *narrator) group(plan *model.Plan, g *model.CommitGroup) {
	for i := range g.Stops {
		n.alloc("AllocationStopped", g.Stops[i].AllocID)
	}
	for i := range g.Evictions {
		n.alloc("AllocationEvicted", g.Evictions[i].AllocID)
	}
	for _, a := range g.Updates {
		n.alloc("AllocationUpdated", a.ID)
	}
	for _, a := range g.Placements {
		n.alloc("AllocationPlaced", a.ID)
	}
	if len(g.Evictions) > 0 {
		n.decisions(plan, g)
	}
	n.assigned(plan, g)
}
