package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

// AllocStubs returns allocations, ascending by ID, and the greatest index among them.
func AllocStubs(s *state.Snapshot, allocs []*model.Allocation) ([]*client.AllocationStub, uint64) {
	list, changed := []*client.AllocationStub{}, uint64(0)
	for _, a := range allocs {
		changed = max(changed, AllocChanged(s, a))
		list = append(list, AllocStub(s, a))
	}
	slices.SortFunc(list, func(a, b *client.AllocationStub) int { return strings.Compare(a.ID, b.ID) })
	return list, changed
}

// IsDisconnected reports whether an allocation is retained for a disconnected node. It
// looks up the node only if the allocation can be in that state, which is rare.
func IsDisconnected(s *state.Snapshot, a *model.Allocation) bool {
	return a.Group.Disconnect != nil && a.Unknown(s.Node(a.NodeID))
}

// AllocChanged returns the index of the last change of an allocation's view, or a later
// one. If the node disconnects, only the node is written, so its index counts as well.
func AllocChanged(s *state.Snapshot, a *model.Allocation) uint64 {
	if a.Group.Disconnect == nil || a.Client.Terminal() {
		return a.ModifyIndex
	}
	if n := s.Node(a.NodeID); n != nil {
		return max(a.ModifyIndex, n.ModifyIndex)
	}
	return a.ModifyIndex
}

// JobNodeKeys returns the further keys that a read of a job's allocations must watch: the
// nodes, if allocations may be retained for disconnected ones.
func JobNodeKeys(s *state.Snapshot, key model.JobKey) []state.Key {
	for _, a := range s.AppendJobAllocs(nil, key) {
		if a.Group.Disconnect != nil {
			return []state.Key{state.TableNodes.All()}
		}
	}
	return nil
}

// ClientStatus returns the client status of an allocation, or unknown if its node is
// disconnected.
func ClientStatus(s *state.Snapshot, a *model.Allocation) string {
	if IsDisconnected(s, a) {
		return model.ClientUnknown
	}
	return a.Client.String()
}

// NodeName returns the name of a node, or "" if there is no such node.
func NodeName(s *state.Snapshot, id string) string {
	if n := s.Node(id); n != nil {
		return n.Name
	}
	return ""
}

// AllocStub returns an allocation as a list entry.
func AllocStub(s *state.Snapshot, a *model.Allocation) *client.AllocationStub {
	return &client.AllocationStub{
		ID: a.ID, Name: model.AllocName(a.Group, a.Index, a.Incarnation), Namespace: a.Job.Namespace, EvalID: a.EvalID,
		NodeID: a.NodeID, NodeName: NodeName(s, a.NodeID), JobID: a.Job.ID, JobType: a.Job.Type.String(), JobVersion: a.Job.Version,
		TaskGroup: a.Group.Name, Priority: int(a.Job.Priority),
		DesiredStatus: a.Desired.String(), DesiredDescription: a.DesiredReason,
		ClientStatus: ClientStatus(s, a), ClientDescription: a.ClientText,
		PreemptedAllocations: a.Preempted, PreemptedByAllocation: a.PreemptedBy,
		PreemptedAllocs: a.Preempted, PreemptedByAllocID: a.PreemptedBy, PolicyVersion: a.PolicyVersion,
		PreviousAllocation: a.MovedFrom, NextAllocation: a.MovedTo,
		ResourceUse: a.Group.Resources, TaskStates: taskStates(a),
		CreateTime: a.CreateTime, ModifyTime: cmp.Or(a.ModifyTime, a.CreateTime), CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex,
	}
}

// Alloc returns a whole allocation. jobs caches the views of job versions across several
// allocations; it may be nil.
func Alloc(s *state.Snapshot, a *model.Allocation, jobs map[*model.Job]*client.Job) *client.Allocation {
	job := jobs[a.Job]
	if job == nil {
		job = jobspec.FromModel(a.Job)
		if jobs != nil {
			jobs[a.Job] = job
		}
	}
	out := &client.Allocation{
		ID: a.ID, Name: model.AllocName(a.Group, a.Index, a.Incarnation), Namespace: a.Job.Namespace, EvalID: a.EvalID,
		NodeID: a.NodeID, NodeName: NodeName(s, a.NodeID), JobID: a.Job.ID, JobVersion: a.Job.Version, Job: job,
		TaskGroup: a.Group.Name, Priority: int(a.Job.Priority),
		DesiredStatus: a.Desired.String(), DesiredDescription: a.DesiredReason,
		ClientStatus: ClientStatus(s, a), ClientDescription: a.ClientText,
		PreemptedAllocations: a.Preempted, PreemptedByAllocation: a.PreemptedBy,
		PreemptedAllocs: a.Preempted, PreemptedByAllocID: a.PreemptedBy, PolicyVersion: a.PolicyVersion,
		PreviousAllocation: a.MovedFrom, NextAllocation: a.MovedTo,
		AllocatedResources: AllocatedResources(a.Group), Resources: groupResources(a.Group), ResourceUse: a.Group.Resources, Ports: a.Group.Ports, TaskStates: taskStates(a),
		Score: a.Score, Index: a.Index, Incarnation: a.Incarnation, SavedWork: a.SavedWork,
		CreateTime: a.CreateTime, EndTime: endTime(a), ModifyTime: cmp.Or(a.ModifyTime, a.CreateTime),
		CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex, AllocModifyIndex: a.ModifyIndex,
	}
	if a.Desired != model.DesiredRun {
		out.StopTime = a.EndTime
	}
	if a.Stopping() {
		out.KillDeadline = a.EndTime + a.Group.KillTimeout
	}
	if a.Started {
		out.StartTime = a.StartTime
	}
	for _, d := range a.Devices {
		out.Devices = append(out.Devices, client.DeviceUse{ID: d.ID, Count: int(d.Count)})
	}
	return out
}

// endTime returns the time at which the node reported the end of an allocation, or at
// which it was declared lost; 0 while it may still run. The EndTime of the model is that
// of the decision to stop it, on which scheduling depends. A terminal allocation does
// not change any more, so its last change is the report.
func endTime(a *model.Allocation) int64 {
	switch {
	case !a.Client.Terminal():
		return 0
	case a.Desired == model.DesiredRun:
		return a.EndTime
	}
	return max(a.EndTime, a.ModifyTime)
}

// taskStates returns the states of an allocation's tasks, in Nomad's form. Nodes report
// the state of whole allocations, so all tasks are in the same state.
func taskStates(a *model.Allocation) map[string]*client.TaskState {
	if len(a.Group.Tasks) == 0 {
		return nil
	}
	state := &client.TaskState{State: "pending", Failed: a.Client == model.ClientFailed}
	event := func(kind string, at int64, message string) *time.Time {
		state.Events = append(state.Events, client.TaskEvent{Type: kind, Time: at, DisplayMessage: message})
		return new(time.Unix(0, at).UTC())
	}
	event("Received", a.CreateTime, "placed on the node")
	if a.Started {
		state.State, state.StartedAt = "running", event("Started", a.StartTime, "started by the node")
	}
	switch {
	case a.Client.Terminal() && a.Desired != model.DesiredRun:
		state.State, state.FinishedAt = "dead", event("Killed", endTime(a), cmp.Or(a.ClientText, a.DesiredReason))
	case a.Client.Terminal():
		state.State, state.FinishedAt = "dead", event("Terminated", a.EndTime, a.ClientText)
	}
	states := make(map[string]*client.TaskState, len(a.Group.Tasks))
	for _, t := range a.Group.Tasks {
		states[t.Name] = state
	}
	return states
}

// AllocatedResources returns the resources of one instance of a group, in Nomad's form.
func AllocatedResources(g *model.Group) *client.AllocatedResources {
	out := &client.AllocatedResources{Tasks: map[string]*client.AllocatedTaskResources{}}
	for _, t := range g.Tasks {
		out.Tasks[t.Name] = &client.AllocatedTaskResources{
			Cpu:    client.AllocatedCpuResources{CpuShares: t.Resources["cpu"]},
			Memory: client.AllocatedMemoryResources{MemoryMB: t.Resources["memory"]},
		}
	}
	out.Shared.DiskMB = g.Resources["disk"]
	return out
}

// groupResources returns the sums of the resources of a group's tasks, in Nomad's older
// form.
func groupResources(g *model.Group) *client.Resources {
	return &client.Resources{
		CPU: new(int(g.Resources["cpu"])), MemoryMB: new(int(g.Resources["memory"])), DiskMB: new(int(g.Resources["disk"])),
	}
}

// AllocMetrics returns the reasons why groups were not placed, in Nomad's form and as one
// sentence.
func AllocMetrics(failed map[string]*model.Explanation) map[string]*client.AllocationMetric {
	if len(failed) == 0 {
		return nil
	}
	out := map[string]*client.AllocationMetric{}
	for group, x := range failed {
		if x == nil {
			x = &model.Explanation{}
		}
		m := &client.AllocationMetric{
			NodesEvaluated: x.Nodes, NodesFiltered: sum(x.Filtered), NodesExhausted: sum(x.Exhausted),
			ConstraintFiltered: x.Filtered, DimensionExhausted: x.Exhausted, CoalescedFailures: x.Waiting,
			NotReady: x.NotReady, Preemption: x.Preempted, NoEviction: x.NoEviction, Gang: x.Gang, Explanation: x.String(),
		}
		for _, n := range x.Samples {
			m.Samples = append(m.Samples, client.NodeReason{NodeID: n.NodeID, Reason: n.Reason})
		}
		out[group] = m
	}
	return out
}
