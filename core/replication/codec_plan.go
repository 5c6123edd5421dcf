package replication

import (
	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A plan of thousands of placements is the largest entry there is. What its
// allocations share is written once: node and evaluation ids in a table of
// names, versions of jobs by reference, since every server has them in its
// state. What is left of an allocation is some 50 bytes.

// jobTable numbers versions of jobs.
type jobTable struct {
	numbers map[*model.Job]uint32
	list    []*model.Job
	last    *model.Job // placements of one plan share their version
	lastNo  uint32
}

func (t *jobTable) number(j *model.Job) uint32 {
	if j == t.last && j != nil {
		return t.lastNo
	}
	n, ok := t.numbers[j]
	if !ok {
		if t.numbers == nil {
			t.numbers = map[*model.Job]uint32{}
		}
		n = uint32(len(t.list))
		t.numbers[j] = n
		t.list = append(t.list, j)
	}
	t.last, t.lastNo = j, n
	return n
}

// batch writes a batch down; registered is the key of the job that the entry
// registers, if it does.
func (w *writer) batch(b *apply.Batch, registered *model.JobKey) *pb.Batch {
	if b == nil {
		return nil
	}
	w.names, w.list, w.jobs = nil, nil, &jobTable{}
	m := &pb.Batch{Now: b.Now, Ineligible: w.ids(b.Ineligible)}
	for i := range b.Plans {
		m.Plans = append(m.Plans, w.plan(&b.Plans[i]))
	}
	for _, j := range w.jobs.list {
		ref := &pb.JobRef{Namespace: text(j.Namespace), Id: text(j.ID), ModifyIndex: j.ModifyIndex}
		if registered != nil && j.Key() == *registered {
			ref.ModifyIndex = 0
		}
		m.Jobs = append(m.Jobs, ref)
	}
	m.Names = w.list
	return m
}

func (w *writer) plan(bp *apply.BatchPlan) *pb.Plan {
	p := bp.Plan
	m := &pb.Plan{
		EvalId: w.id(p.EvalID), EvalToken: text(p.EvalToken), Job: keyToPB(p.Job), Priority: p.Priority,
		SnapshotIndex: p.SnapshotIndex, Now: p.Now, Length: uint32(len(p.Groups)),
		Committed: make([]uint32, len(bp.Groups)), Groups: make([]*pb.CommitGroup, len(bp.Groups)),
	}
	places := 0
	for _, at := range bp.Groups {
		places += len(p.Groups[at].Placements)
	}
	groups, allocs := make([]pb.CommitGroup, len(bp.Groups)), make([]pb.Allocation, places)
	for i, at := range bp.Groups {
		g, to := &p.Groups[at], &groups[i]
		m.Committed[i], m.Groups[i] = uint32(at), to
		to.Place = make([]*pb.Allocation, len(g.Placements))
		for k, a := range g.Placements {
			to.Place[k] = &allocs[0]
			w.alloc(a, &allocs[0])
			allocs = allocs[1:]
		}
		w.rest(g, to)
	}
	return m
}

// rest is what a commit group holds beside placements.
func (w *writer) rest(g *model.CommitGroup, to *pb.CommitGroup) {
	for _, a := range g.Updates {
		m := &pb.Allocation{}
		w.alloc(a, m)
		to.Update = append(to.Update, m)
	}
	for i := range g.Stops {
		s := &g.Stops[i]
		to.Stop = append(to.Stop, &pb.Stop{AllocId: w.id(s.AllocID), Reason: w.name(s.Reason), Lost: s.Lost})
	}
	for i := range g.Evictions {
		e := &g.Evictions[i]
		to.Evict = append(to.Evict, &pb.Eviction{AllocId: w.id(e.AllocID), By: w.id(e.By), Policy: w.name(e.Policy)})
	}
	for _, c := range g.Claims {
		to.Claims = append(to.Claims, w.claim(c))
	}
	to.Assign, to.Withdraw = each(g.Assignments, w.assignment), each(g.Withdrawals, w.withdrawal)
	to.Release, to.Divisible = w.ids(g.ReleasedClaims), g.Divisible
}

func (w *writer) alloc(a *model.Allocation, m *pb.Allocation) {
	m.Id, m.Job, m.Group = w.id(a.ID), w.jobs.number(a.Job), w.name(a.Group.Name)
	m.Index, m.Incarnation = int64(a.Index), int64(a.Incarnation)
	m.NodeId, m.EvalId, m.Devices = w.name(a.NodeID), w.name(a.EvalID), each(a.Devices, useToPB)
	m.Desired, m.DesiredReason = uint32(a.Desired), w.name(a.DesiredReason)
	m.Client, m.ClientText = uint32(a.Client), w.name(a.ClientText)
	m.Preempted, m.PreemptedBy, m.PolicyVersion = w.ids(a.Preempted), w.id(a.PreemptedBy), w.name(a.PolicyVersion)
	m.Score, m.CreateTime, m.ModifyTime = a.Score, a.CreateTime, a.ModifyTime
	m.StartTime, m.Started, m.EndTime, m.SavedWork = a.StartTime, a.Started, a.EndTime, a.SavedWork
	m.CreateIndex, m.ModifyIndex = a.CreateIndex, a.ModifyIndex
}

func (w *writer) claim(c *model.Claim) *pb.Claim {
	return &pb.Claim{
		Id: w.id(c.ID), Claimant: keyToPB(c.Claimant), NodeId: w.id(c.NodeID), Vec: amounts(&c.Vec),
		ClusterId: w.id(c.ClusterID),
		Ports:     portNumbers(c.Ports), Devices: each(c.Devices, useToPB), Priority: c.Priority, Expiry: c.Expiry,
		CreateIndex: c.CreateIndex,
	}
}

// amounts is a vector without zeros at the end.
func amounts(v *model.Vector) []int64 {
	used := len(v)
	for used > 0 && v[used-1] == 0 {
		used--
	}
	return v[:used:used]
}

func useToPB(u *model.DeviceUse) *pb.DeviceUse { return &pb.DeviceUse{Id: text(u.ID), Count: u.Count} }

func useOf(m **pb.DeviceUse) model.DeviceUse { return model.DeviceUse{ID: (*m).Id, Count: (*m).Count} }

// batch reads a batch. Its jobs are references: resolver puts in what they
// refer to.
func (r *reader) batch(m *pb.Batch) *apply.Batch {
	if m == nil {
		return nil
	}
	r.names = r.ids(m.Names)
	r.jobs = &jobTable{}
	for _, ref := range m.Jobs {
		r.jobs.list = append(r.jobs.list, &model.Job{Namespace: ref.Namespace, ID: ref.Id, ModifyIndex: ref.ModifyIndex})
	}
	b := &apply.Batch{Now: m.Now, Ineligible: r.ids(m.Ineligible)}
	for _, p := range m.Plans {
		b.Plans = append(b.Plans, r.plan(p))
	}
	return b
}

// maxGroups is far more commit groups than a plan has.
const maxGroups = 1 << 24

func (r *reader) plan(m *pb.Plan) apply.BatchPlan {
	p := &model.Plan{
		EvalID: r.id(m.EvalId), EvalToken: m.EvalToken, Job: keyOf(m.Job), Priority: m.Priority,
		SnapshotIndex: m.SnapshotIndex, Now: m.Now,
	}
	if len(m.Committed) != len(m.Groups) || m.Length > maxGroups {
		r.fail("plan with %d groups at %d of %d places", len(m.Groups), len(m.Committed), m.Length)
		return apply.BatchPlan{Plan: p}
	}
	p.Groups = make([]model.CommitGroup, m.Length)
	committed := make([]int, len(m.Committed))
	places := 0
	for _, g := range m.Groups {
		places += len(g.Place)
	}
	allocs := make([]model.Allocation, places)
	for i, at := range m.Committed {
		if at >= m.Length || i > 0 && int(at) <= committed[i-1] {
			r.fail("commit group %d of %d is out of order", at, m.Length)
			return apply.BatchPlan{Plan: p}
		}
		committed[i] = int(at)
		from, g := m.Groups[i], &p.Groups[at]
		if len(from.Place) > 0 {
			g.Placements = make([]*model.Allocation, len(from.Place))
		}
		for k, a := range from.Place {
			g.Placements[k] = &allocs[0]
			r.alloc(a, &allocs[0])
			allocs = allocs[1:]
		}
		r.rest(from, g)
	}
	return apply.BatchPlan{Plan: p, Groups: committed}
}

func (r *reader) rest(m *pb.CommitGroup, to *model.CommitGroup) {
	for _, u := range m.Update {
		a := &model.Allocation{}
		r.alloc(u, a)
		to.Updates = append(to.Updates, a)
	}
	for _, s := range m.Stop {
		to.Stops = append(to.Stops, model.Stop{AllocID: r.id(s.AllocId), Reason: r.name(s.Reason), Lost: s.Lost})
	}
	for _, e := range m.Evict {
		to.Evictions = append(to.Evictions, model.Eviction{AllocID: r.id(e.AllocId), By: r.id(e.By), Policy: r.name(e.Policy)})
	}
	for _, c := range m.Claims {
		to.Claims = append(to.Claims, r.claim(c))
	}
	to.Assignments, to.Withdrawals = each(m.Assign, r.assignment), each(m.Withdraw, r.withdrawal)
	to.ReleasedClaims, to.Divisible = r.ids(m.Release), m.Divisible
}

func (r *reader) alloc(m *pb.Allocation, a *model.Allocation) {
	a.ID, a.Index, a.Incarnation = r.id(m.Id), int(m.Index), int(m.Incarnation)
	if int(m.Job) >= len(r.jobs.list) {
		r.fail("allocation %s: job %d of %d", a.ID, m.Job, len(r.jobs.list))
		return
	}
	a.Job = r.jobs.list[m.Job]
	a.Group = r.groupOf(a.Job, r.name(m.Group))
	a.NodeID, a.EvalID, a.Devices = r.name(m.NodeId), r.name(m.EvalId), each(m.Devices, useOf)
	a.Desired = model.DesiredStatus(r.enum("desired status", m.Desired, uint32(model.DesiredEvict)))
	a.DesiredReason, a.Client, a.ClientText = r.name(m.DesiredReason), r.clientStatus(m.Client), r.name(m.ClientText)
	a.Preempted, a.PreemptedBy, a.PolicyVersion = r.ids(m.Preempted), r.id(m.PreemptedBy), r.name(m.PolicyVersion)
	a.Score, a.CreateTime, a.ModifyTime = m.Score, m.CreateTime, m.ModifyTime
	a.StartTime, a.Started, a.EndTime, a.SavedWork = m.StartTime, m.Started, m.EndTime, m.SavedWork
	a.CreateIndex, a.ModifyIndex = m.CreateIndex, m.ModifyIndex
}

// groupOf finds a group; a reference to a job gets a group by that name.
func (r *reader) groupOf(j *model.Job, name string) *model.Group {
	if g := j.Group(name); g != nil {
		return g
	}
	if r.complete {
		r.fail("job %s has no group %q", j.Key(), name)
	}
	g := &model.Group{Name: name, Job: j}
	j.Groups = append(j.Groups, g)
	return g
}

func (r *reader) claim(m *pb.Claim) *model.Claim {
	c := &model.Claim{
		ID: r.id(m.Id), Claimant: keyOf(m.Claimant), NodeID: r.id(m.NodeId), ClusterID: r.id(m.ClusterId), Ports: r.ports(m.Ports),
		Devices: each(m.Devices, useOf), Priority: m.Priority, Expiry: m.Expiry, CreateIndex: m.CreateIndex,
	}
	c.Vec = r.vector("claim", c.ID, m.Vec)
	return c
}

func (r *reader) vector(what, id string, amounts []int64) (v model.Vector) {
	if len(amounts) > len(v) {
		r.fail("%s %s is over %d dimensions", what, id, len(amounts))
	}
	copy(v[:], amounts)
	return v
}
