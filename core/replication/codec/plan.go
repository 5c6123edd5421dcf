package codec

import (
	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// A plan of thousands of placements is the largest entry. The values that its
// allocations share are written once: node and evaluation IDs in a table of names, job versions
// as references, since every server has them in its state. About 50 bytes remain
// of an allocation.

// A JobTable numbers job versions in the order in which they are first used. Versions
// are compared by address: two versions of a job are two objects in a state, and each
// is one.
type JobTable struct {
	numbers map[*model.Job]uint32
	list    []*model.Job
	// last and lastNumber avoid the map lookup: the placements of a plan mostly
	// share their version.
	last       *model.Job
	lastNumber uint32
}

// NewJobTable returns a table of job versions, numbered in order.
func NewJobTable(versions ...*model.Job) *JobTable {
	t := &JobTable{}
	for _, j := range versions {
		t.number(j)
	}
	return t
}

// DecodeJobTable returns a table for a Decoder, which looks up versions by number
// only.
func DecodeJobTable(versions []*model.Job) *JobTable { return &JobTable{list: versions} }

// Add numbers a version unless it has a number.
func (t *JobTable) Add(j *model.Job) { t.number(j) }

// Versions returns the versions in order of their numbers.
func (t *JobTable) Versions() []*model.Job { return t.list }

// number returns the number of a version, and adds the version if necessary. nil has a
// number as well, so that encoding an allocation without a job does not panic.
func (t *JobTable) number(j *model.Job) uint32 {
	if j == t.last && j != nil {
		return t.lastNumber
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
	t.last, t.lastNumber = j, n
	return n
}

// batch encodes a batch. registered is the job that the entry itself registers, or
// nil: it has no ModifyIndex yet, and is encoded with 0.
func (e *Encoder) batch(b *apply.Batch, registered *model.Job) *pb.Batch {
	if b == nil {
		return nil
	}
	// The tables belong to one batch.
	e.names, e.list, e.jobs = nil, nil, &JobTable{}
	m := &pb.Batch{Now: b.Now, Ineligible: e.ids(b.Ineligible)}
	for i := range b.Plans {
		m.Plans = append(m.Plans, e.plan(&b.Plans[i]))
	}
	for _, j := range e.jobs.list {
		ref := &pb.JobRef{Namespace: Text(j.Namespace), Id: Text(j.ID), ModifyIndex: j.ModifyIndex}
		if registered != nil && j.Key() == registered.Key() {
			ref.ModifyIndex = 0
		}
		m.Jobs = append(m.Jobs, ref)
	}
	m.Names = e.list
	return m
}

// plan encodes the commit groups that were accepted. Messages and allocations of a
// plan share two slices, which saves an allocation for each.
func (e *Encoder) plan(bp *apply.BatchPlan) *pb.Plan {
	p := bp.Plan
	m := &pb.Plan{
		EvalId: e.id(p.EvalID), EvalToken: Text(p.EvalToken), Job: e.JobKey(&p.Job), Priority: p.Priority,
		SnapshotIndex: p.SnapshotIndex, Now: p.Now, Length: uint32(len(p.Groups)),
		Committed: make([]uint32, len(bp.Groups)), Groups: make([]*pb.CommitGroup, len(bp.Groups)),
	}
	placements := 0
	for _, at := range bp.Groups {
		placements += len(p.Groups[at].Placements)
	}
	groups, allocs := make([]pb.CommitGroup, len(bp.Groups)), make([]pb.Allocation, placements)
	for i, at := range bp.Groups {
		g, to := &p.Groups[at], &groups[i]
		m.Committed[i], m.Groups[i] = uint32(at), to
		to.Place = make([]*pb.Allocation, len(g.Placements))
		for k, a := range g.Placements {
			to.Place[k] = &allocs[0]
			e.allocation(a, &allocs[0])
			allocs = allocs[1:]
		}
		to.Update = encodePointers(g.Updates, e.Allocation)
		to.Stop, to.Evict = encodeList(g.Stops, e.Stop), encodeList(g.Evictions, e.Eviction)
		to.Claims = encodePointers(g.Claims, e.Claim)
		to.Assign, to.Withdraw = encodePointers(g.Assignments, e.Assignment), encodeList(g.Withdrawals, e.Withdrawal)
		to.Release, to.Divisible = e.ids(g.ReleasedClaims), g.Divisible
		to.Choices = encodePointers(g.Choices, e.choice)
	}
	return m
}

// EncodeAllocations encodes allocations into one slice.
func (e *Encoder) EncodeAllocations(allocs []*model.Allocation) []*pb.Allocation {
	list, backing := make([]*pb.Allocation, len(allocs)), make([]pb.Allocation, len(allocs))
	for i, a := range allocs {
		e.allocation(a, &backing[i])
		list[i] = &backing[i]
	}
	return list
}

// batch decodes a batch. Its jobs are references. Groups are references as well, and
// get their fields when fsm or BindPlan resolves them.
func (d *Decoder) batch(m *pb.Batch) *apply.Batch {
	if m == nil {
		return nil
	}
	d.names = d.ids(m.Names)
	d.jobs = &JobTable{}
	for _, ref := range m.Jobs {
		d.jobs.list = append(d.jobs.list, &model.Job{Namespace: ref.Namespace, ID: ref.Id, ModifyIndex: ref.ModifyIndex})
	}
	b := &apply.Batch{Now: m.Now, Ineligible: d.ids(m.Ineligible)}
	for _, p := range m.Plans {
		b.Plans = append(b.Plans, d.plan(p))
	}
	return b
}

// maxGroups bounds the memory that a damaged entry can claim.
const maxGroups = 1 << 24

// plan decodes a plan. Groups that were not committed are empty, at their positions: a
// DroppedGroup and the result refer to positions in the plan as it was submitted.
func (d *Decoder) plan(m *pb.Plan) apply.BatchPlan {
	p := &model.Plan{
		EvalID: d.id(m.EvalId), EvalToken: m.EvalToken, Priority: m.Priority, SnapshotIndex: m.SnapshotIndex, Now: m.Now,
	}
	d.jobKey(m.Job, &p.Job)
	if len(m.Committed) != len(m.Groups) || m.Length > maxGroups {
		d.fail("plan has %d commit groups at %d of %d positions", len(m.Groups), len(m.Committed), m.Length)
		return apply.BatchPlan{Plan: p}
	}
	p.Groups = make([]model.CommitGroup, m.Length)
	committed := make([]int, len(m.Committed))
	placements := 0
	for _, g := range m.Groups {
		placements += len(g.Place)
	}
	allocs := make([]model.Allocation, placements)
	for i, at := range m.Committed {
		if at >= m.Length || i > 0 && int(at) <= committed[i-1] {
			d.fail("commit group %d of %d is out of order", at, m.Length)
			return apply.BatchPlan{Plan: p}
		}
		committed[i] = int(at)
		from, g := m.Groups[i], &p.Groups[at]
		if len(from.Place) > 0 {
			g.Placements = make([]*model.Allocation, len(from.Place))
		}
		for k, a := range from.Place {
			g.Placements[k] = &allocs[0]
			d.DecodeAllocation(a, &allocs[0])
			allocs = allocs[1:]
		}
		d.commitGroup(from, g)
	}
	return apply.BatchPlan{Plan: p, Groups: committed}
}

// commitGroup decodes a commit group without its placements.
func (d *Decoder) commitGroup(m *pb.CommitGroup, g *model.CommitGroup) {
	for _, u := range m.Update {
		a := &model.Allocation{}
		d.DecodeAllocation(u, a)
		g.Updates = append(g.Updates, a)
	}
	g.Stops, g.Evictions = decodeList(m.Stop, d.stop), decodeList(m.Evict, d.eviction)
	g.Claims = decodePointers(m.Claims, d.Claim)
	g.Assignments, g.Withdrawals = decodePointers(m.Assign, d.Assignment), decodeList(m.Withdraw, d.withdrawal)
	g.ReleasedClaims, g.Divisible = d.ids(m.Release), m.Divisible
	g.Choices = decodePointers(m.Choices, d.choice)
}

// DecodeAllocation decodes an allocation, and resolves its job and group in the
// decoder's table. It records an error if the table lacks the number.
func (d *Decoder) DecodeAllocation(m *pb.Allocation, a *model.Allocation) {
	d.allocation(m, a)
	if int(m.Job) >= len(d.jobs.list) {
		d.fail("allocation %s: job %d of %d", a.ID, m.Job, len(d.jobs.list))
		return
	}
	a.Job = d.jobs.list[m.Job]
	a.Group = d.findGroup(a.Job, d.name(m.Group))
}

// findGroup returns a group of a job. A reference to a job gets a group of that
// name.
func (d *Decoder) findGroup(j *model.Job, name string) *model.Group {
	if g := j.Group(name); g != nil {
		return g
	}
	if d.complete {
		d.fail("job %s has no group %q", j.Key(), name)
	}
	g := &model.Group{Name: name, Job: j}
	j.Groups = append(j.Groups, g)
	return g
}
