package api

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

func compareDown(a, b uint64) int { return cmp.Compare(b, a) }

// summarise counts a job's allocations, and tells the greatest index among
// them and the job's evaluations.
func summarise(s *state.Snapshot, j *model.Job) (*client.JobSummary, uint64) {
	out := &client.JobSummary{
		JobID: j.ID, Namespace: j.Namespace, Summary: map[string]client.TaskGroupSummary{},
		CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex,
	}
	for _, g := range j.Groups {
		out.Summary[g.Name] = client.TaskGroupSummary{}
	}
	for _, a := range s.AppendJobAllocs(nil, j.Key()) {
		out.ModifyIndex = max(out.ModifyIndex, changedAt(s, a))
		t := out.Summary[a.Group.Name]
		count(&t, s, a)
		out.Summary[a.Group.Name] = t
	}
	evals := s.EvalsOfJob(j.Key())
	for _, e := range evals {
		out.ModifyIndex = max(out.ModifyIndex, e.ModifyIndex)
	}
	if e := waiting(evals); e != nil {
		for group, n := range e.Queued {
			t := out.Summary[group]
			t.Queued = n
			out.Summary[group] = t
		}
	}
	return out, out.ModifyIndex
}

// waiting is which of a job's or a binding's evaluations waits for room; nil: none
// does. It is the newest: older ones stay blocked until they are cancelled, which
// takes a while.
func waiting(evals []*model.Evaluation) (newest *model.Evaluation) {
	for _, e := range evals {
		if e.Status == model.EvalBlocked && (newest == nil || e.CreateIndex > newest.CreateIndex) {
			newest = e
		}
	}
	return newest
}

func count(t *client.TaskGroupSummary, s *state.Snapshot, a *model.Allocation) {
	switch {
	case a.Desired == model.DesiredEvict:
		t.Evicted++
	case isUnknown(s, a):
		t.Unknown++
	case a.Client == model.ClientRunning:
		t.Running++
	case a.Client == model.ClientPending && a.Live():
		t.Starting++
	case a.Client == model.ClientComplete:
		t.Complete++
	case a.Client == model.ClientFailed:
		t.Failed++
	case a.Client == model.ClientLost:
		t.Lost++
	}
}

// jobStatus is what Nomad calls a job's status: running while anything of it
// is, dead when it was stopped or all of it is done, else pending.
func jobStatus(s *state.Snapshot, j *model.Job) (status, why string) {
	live, ended := 0, 0
	for _, a := range s.AppendJobAllocs(nil, j.Key()) {
		switch {
		case !a.Client.Terminal():
			live++
		case a.Desired == model.DesiredRun:
			ended++
		}
	}
	switch {
	case j.Stopped && live > 0:
		return "running", "stopping"
	case j.Stopped:
		return "dead", "stopped"
	case live > 0:
		return "running", ""
	}
	evals := s.EvalsOfJob(j.Key())
	if e := waiting(evals); e != nil {
		return "pending", "waits for room: evaluation " + e.ID
	}
	if slices.ContainsFunc(evals, func(e *model.Evaluation) bool { return e.Status == model.EvalPending }) {
		return "pending", ""
	}
	if j.Type.Finite() && ended > 0 {
		return "dead", "complete"
	}
	return "pending", ""
}

// jobOf is a job as the API tells of it.
func jobOf(s *state.Snapshot, j *model.Job) *client.Job {
	out := jobspec.FromModel(j)
	out.Status, out.StatusDescription = jobStatus(s, j)
	return out
}

func jobStub(s *state.Snapshot, j *model.Job) (*client.JobStub, uint64) {
	summary, changed := summarise(s, j)
	stub := &client.JobStub{
		ID: j.ID, Name: cmp.Or(j.Name, j.ID), Namespace: j.Namespace, Datacenters: j.Datacenters, Type: j.Type.String(),
		Priority: int(j.Priority), PriorityClass: j.PriorityClass, Stop: j.Stopped, JobSummary: summary,
		Version: j.Version, SubmitTime: j.SubmitTime, Meta: j.Meta,
		CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex, JobModifyIndex: j.ModifyIndex,
	}
	stub.Status, stub.StatusDescription = jobStatus(s, j)
	return stub, changed
}

// stubsOf lists allocations, ascending by id, with the greatest index among
// them.
func stubsOf(s *state.Snapshot, allocs []*model.Allocation) ([]*client.AllocationStub, uint64) {
	list, changed := []*client.AllocationStub{}, uint64(0)
	for _, a := range allocs {
		changed = max(changed, changedAt(s, a))
		list = append(list, allocStub(s, a))
	}
	slices.SortFunc(list, func(a, b *client.AllocationStub) int { return strings.Compare(a.ID, b.ID) })
	return list, changed
}

// isUnknown is whether an allocation is kept for a node that is silent. Few groups ask
// for that, so that the node is mostly not looked up.
func isUnknown(s *state.Snapshot, a *model.Allocation) bool {
	return a.Group.Disconnect != nil && a.Unknown(s.Node(a.NodeID))
}

// changedAt is the index at which something that is shown of an allocation changed last,
// or a later one. That nobody knows what it does is told of its node, and written there
// alone.
func changedAt(s *state.Snapshot, a *model.Allocation) uint64 {
	if a.Group.Disconnect == nil || a.Client.Terminal() {
		return a.ModifyIndex
	}
	if n := s.Node(a.NodeID); n != nil {
		return max(a.ModifyIndex, n.ModifyIndex)
	}
	return a.ModifyIndex
}

// nodesUnder is what else a read of a job's allocations has to watch: the nodes, where
// some are kept for one that is silent.
func nodesUnder(s *state.Snapshot, key model.JobKey) []state.Key {
	for _, a := range s.AppendJobAllocs(nil, key) {
		if a.Group.Disconnect != nil {
			return []state.Key{state.TableNodes.All()}
		}
	}
	return nil
}

func clientStatus(s *state.Snapshot, a *model.Allocation) string {
	if isUnknown(s, a) {
		return model.ClientUnknown
	}
	return a.Client.String()
}

func nodeName(s *state.Snapshot, id string) string {
	if n := s.Node(id); n != nil {
		return n.Name
	}
	return ""
}

func allocStub(s *state.Snapshot, a *model.Allocation) *client.AllocationStub {
	return &client.AllocationStub{
		ID: a.ID, Name: model.AllocName(a.Group, a.Index, a.Incarnation), Namespace: a.Job.Namespace, EvalID: a.EvalID,
		NodeID: a.NodeID, NodeName: nodeName(s, a.NodeID), JobID: a.Job.ID, JobType: a.Job.Type.String(), JobVersion: a.Job.Version,
		TaskGroup: a.Group.Name, Priority: int(a.Job.Priority),
		DesiredStatus: a.Desired.String(), DesiredDescription: a.DesiredReason,
		ClientStatus: clientStatus(s, a), ClientDescription: a.ClientText,
		PreemptedAllocations: a.Preempted, PreemptedByAllocation: a.PreemptedBy,
		PreemptedAllocs: a.Preempted, PreemptedByAllocID: a.PreemptedBy, PolicyVersion: a.PolicyVersion,
		ResourceUse: a.Group.Resources,
		CreateTime:  a.CreateTime, ModifyTime: cmp.Or(a.ModifyTime, a.CreateTime), CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex,
	}
}

// allocOf is an allocation, whole. jobs spares the same version of a job from
// being translated for each of its allocations; nil: there is one alone.
func allocOf(s *state.Snapshot, a *model.Allocation, jobs map[*model.Job]*client.Job) *client.Allocation {
	job := jobs[a.Job]
	if job == nil {
		job = jobspec.FromModel(a.Job)
		if jobs != nil {
			jobs[a.Job] = job
		}
	}
	out := &client.Allocation{
		ID: a.ID, Name: model.AllocName(a.Group, a.Index, a.Incarnation), Namespace: a.Job.Namespace, EvalID: a.EvalID,
		NodeID: a.NodeID, NodeName: nodeName(s, a.NodeID), JobID: a.Job.ID, JobVersion: a.Job.Version, Job: job,
		TaskGroup: a.Group.Name, Priority: int(a.Job.Priority),
		DesiredStatus: a.Desired.String(), DesiredDescription: a.DesiredReason,
		ClientStatus: clientStatus(s, a), ClientDescription: a.ClientText,
		PreemptedAllocations: a.Preempted, PreemptedByAllocation: a.PreemptedBy,
		PreemptedAllocs: a.Preempted, PreemptedByAllocID: a.PreemptedBy, PolicyVersion: a.PolicyVersion,
		AllocatedResources: allocated(a.Group), ResourceUse: a.Group.Resources, Ports: a.Group.Ports,
		Score: a.Score, Index: a.Index, Incarnation: a.Incarnation, SavedWork: a.SavedWork,
		CreateTime: a.CreateTime, EndTime: a.EndTime, ModifyTime: cmp.Or(a.ModifyTime, a.CreateTime),
		CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex, AllocModifyIndex: a.ModifyIndex,
	}
	if a.Started {
		out.StartTime = a.StartTime
	}
	for _, d := range a.Devices {
		out.Devices = append(out.Devices, client.DeviceUse{ID: d.ID, Count: int(d.Count)})
	}
	return out
}

// allocated is what a group's instance holds, in Nomad's form.
func allocated(g *model.Group) *client.AllocatedResources {
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

func evalOf(e *model.Evaluation) *client.Evaluation {
	out := &client.Evaluation{
		ID: e.ID, Priority: int(e.Priority), Type: e.Type.String(), TriggeredBy: string(e.TriggeredBy), Namespace: e.Namespace,
		JobID: e.JobID, Status: e.Status.String(), StatusDescription: e.StatusText,
		PreviousEval: e.Previous, BlockedEval: e.Blocked, SupersededBy: e.SupersededBy,
		EscapedComputedClass: e.Escaped, QueuedAllocations: e.Queued, Attempts: int(e.Attempts),
		SnapshotIndex: e.SnapshotIndex, CreateIndex: e.CreateIndex, ModifyIndex: e.ModifyIndex, CreateTime: e.CreateTime, ModifyTime: e.ModifyTime,
	}
	if e.WaitUntil > 0 {
		at := time.Unix(0, e.WaitUntil).UTC()
		out.WaitUntil = &at
	}
	out.FailedTGAllocs = metricsOf(e.Failed)
	return out
}

func evalStub(e *model.Evaluation) *client.EvaluationStub {
	return &client.EvaluationStub{
		ID: e.ID, Priority: int(e.Priority), Type: e.Type.String(), TriggeredBy: string(e.TriggeredBy), Namespace: e.Namespace,
		JobID: e.JobID, Status: e.Status.String(), StatusDescription: e.StatusText, PreviousEval: e.Previous, BlockedEval: e.Blocked,
		CreateIndex: e.CreateIndex, ModifyIndex: e.ModifyIndex, CreateTime: e.CreateTime, ModifyTime: e.ModifyTime,
	}
}

// metricsOf is why groups found no place, in Nomad's form and as a sentence.
func metricsOf(failed map[string]*model.Explanation) map[string]*client.AllocationMetric {
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
			NotReady: x.NotReady, Preemption: x.Preempted, NoEviction: x.NoEviction, Explanation: x.String(),
		}
		for _, n := range x.Samples {
			m.Samples = append(m.Samples, client.NodeReason{NodeID: n.NodeID, Reason: n.Reason})
		}
		out[group] = m
	}
	return out
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// proposal is a plan that was made and not carried out.
func proposal(s *state.Snapshot, p *endpoint.Proposal, warnings []string) *client.JobPlanResponse {
	out := &client.JobPlanResponse{
		JobModifyIndex: p.JobModifyIndex, FailedTGAllocs: metricsOf(p.Failed), Warnings: strings.Join(slices.Concat(warnings, p.Warnings), "\n"),
		PlanToken: p.Token, Expires: p.Expires, Index: p.Index, NewJob: p.Changes.NewJob, NewSpec: p.Changes.NewSpec,
		Annotations: &client.PlanAnnotations{DesiredTGUpdates: map[string]*client.DesiredUpdates{}, PreemptedAllocs: []*client.AllocationStub{}},
		Unplaced:    p.Queued,
	}
	for group, c := range p.Changes.Groups {
		out.Annotations.DesiredTGUpdates[group] = &client.DesiredUpdates{
			Place: whole(c.Place), Stop: whole(c.Stop), InPlaceUpdate: whole(c.Update), Preemptions: whole(c.Evict),
		}
	}
	policies := map[string]bool{}
	for _, a := range p.Place {
		out.Place = append(out.Place, allocStub(s, a))
	}
	for _, a := range p.Update {
		out.Update = append(out.Update, allocStub(s, a))
	}
	for _, stop := range p.Stop {
		stub := allocStub(s, stop.Alloc)
		stub.DesiredStatus, stub.DesiredDescription = model.DesiredStop.String(), stop.Reason
		out.Stop = append(out.Stop, stub)
	}
	for _, e := range p.Evict {
		stub := allocStub(s, e.Alloc)
		stub.DesiredStatus, stub.PolicyVersion = model.DesiredEvict.String(), e.Policy
		stub.PreemptedByAllocation, stub.PreemptedByAllocID = e.By, e.By
		out.Annotations.PreemptedAllocs = append(out.Annotations.PreemptedAllocs, stub)
		policies[e.Policy] = e.Policy != ""
	}
	for version, named := range policies {
		if named {
			out.Policies = append(out.Policies, version)
		}
	}
	slices.Sort(out.Policies)
	return out
}

func whole(n int) uint64 { return uint64(max(n, 0)) }

// nodeOf is a node, whole.
func nodeOf(n *model.Node) *client.Node {
	out := &client.Node{
		ID: n.ID, Name: cmp.Or(n.Name, n.ID), Datacenter: n.Datacenter, NodeClass: n.Class, HTTPAddr: n.Address,
		Attributes: n.Attributes, Meta: n.Meta, Capacity: resources(n.Capacity), ReservedCapacity: n.Reserved, ReservedPorts: n.Ports,
		Devices: devicesOf(n.Devices), Taints: taintsOf(n.Taints), Drain: n.Drain, SchedulingEligibility: eligibility(n), Status: n.Status.String(),
		CreateIndex: n.CreateIndex, ModifyIndex: n.ModifyIndex,
	}
	out.NodeResources, out.ReservedResources = nomadResources(n)
	return out
}

func nodeStub(n *model.Node) *client.NodeStub {
	out := &client.NodeStub{
		ID: n.ID, Name: cmp.Or(n.Name, n.ID), Address: n.Address, Datacenter: n.Datacenter, NodeClass: n.Class,
		Capacity: resources(n.Capacity), ReservedCapacity: n.Reserved, Devices: devicesOf(n.Devices),
		Taints: taintsOf(n.Taints),
		Drain:  n.Drain, SchedulingEligibility: eligibility(n), Status: n.Status.String(), CreateIndex: n.CreateIndex, ModifyIndex: n.ModifyIndex,
	}
	out.NodeResources, out.ReservedResources = nomadResources(n)
	return out
}

// resources is never null.
func resources(r model.Resources) map[string]int64 {
	if r == nil {
		return map[string]int64{}
	}
	return r
}

func nomadResources(n *model.Node) (*client.NodeResources, *client.NodeReservedResources) {
	have, reserved := inNomadsForm(n.Capacity), client.NodeReservedResources(inNomadsForm(n.Reserved))
	return &have, &reserved
}

func inNomadsForm(r model.Resources) client.NodeResources {
	return client.NodeResources{
		Cpu:    client.NodeCPUResources{CpuShares: r["cpu"]},
		Memory: client.NodeMemoryResources{MemoryMB: r["memory"]},
		Disk:   client.NodeDiskResources{DiskMB: r["disk"]},
	}
}

func devicesOf(devices []model.Device) (list []client.NodeDevice) {
	for _, d := range devices {
		list = append(list, client.NodeDevice{ID: d.ID, Count: int(d.Count), Attributes: d.Attributes})
	}
	return list
}

func eligibility(n *model.Node) string {
	if n.Ineligible || n.Drain {
		return client.NodeIneligible
	}
	return client.NodeEligible
}

func classOf(p *model.PriorityClass) *client.PriorityClass {
	return &client.PriorityClass{
		Name: p.Name, Value: int(p.Value), GlobalDefault: p.GlobalDefault, PreemptionPolicy: preemptionPolicy(p.NeverPreempts), Description: p.Description,
	}
}

// The words of preemption policies, as Kubernetes has them.
const (
	preemptLower = "PreemptLowerPriority"
	preemptNever = "Never"
)

func preemptionPolicy(never bool) string {
	if never {
		return preemptNever
	}
	return preemptLower
}

func tokenOf(t *model.Token) *client.Token {
	return &client.Token{
		AccessorID: t.Accessor, Name: t.Name, Roles: t.Roles, Namespace: t.Namespace,
		CreateTime: t.CreateTime, ExpiresAt: t.ExpiresAt, CreateIndex: t.CreateIndex,
	}
}

// awaited is who must still check it.
func versionOf(v *model.PolicyVersion, awaited map[string]string) *client.PolicyVersion {
	out := &client.PolicyVersion{
		ID: v.ID, Name: v.Name, Digest: v.Digest, Kind: v.Kind, Size: v.Size, Grants: v.Grants, OnFault: v.OnFault, Signer: v.Signer,
		Time: v.Time, CreateIndex: v.CreateIndex, ModifyIndex: v.ModifyIndex,
	}
	out.Config = rawConfig(v.Config)
	for id, check := range v.Checks {
		if out.Checks == nil {
			out.Checks = map[string]client.PolicyCheck{}
		}
		out.Checks[id] = client.PolicyCheck{OK: check.OK, Error: check.Error, Time: check.Time}
	}
	if len(awaited) > 0 {
		out.Awaited = awaited
	}
	return out
}
