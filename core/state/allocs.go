package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

func (v *View) findAlloc(id string) (int32, bool) {
	return v.allocs.index.Find(hashID(id), func(slot int32) bool { return v.allocs.at(slot).ID == id })
}

// Alloc is the allocation with this id; nil when there is none.
func (v *View) Alloc(id string) *model.Allocation {
	if slot, ok := v.findAlloc(id); ok {
		return v.allocs.at(slot)
	}
	return nil
}

// AllocCount is the number of allocations, ended ones included.
func (v *View) AllocCount() int { return v.allocs.len() }

// JobAllocCount is the number of allocations of a job, ended ones included.
func (v *View) JobAllocCount(key model.JobKey) int {
	if r := v.jobRow(key); r != nil {
		return r.allocs.Len()
	}
	return 0
}

// AppendJobAllocs appends all allocations of a job, ended ones included, in
// the order in which they were inserted.
func (v *View) AppendJobAllocs(dst []*model.Allocation, key model.JobKey) []*model.Allocation {
	r := v.jobRow(key)
	if r == nil {
		return dst
	}
	dst = slices.Grow(dst, r.allocs.Len())
	for slot := range r.allocs.All {
		dst = append(dst, v.allocs.at(slot))
	}
	return dst
}

// AppendNodeAllocs appends everything on a node that the node has not seen the
// end of, live and stopping, ascending by id. It also answers for a node that
// is not registered any more.
func (v *View) AppendNodeAllocs(dst []*model.Allocation, nodeID string) []*model.Allocation {
	pos, ok := v.place(nodeID)
	if !ok {
		return dst
	}
	c, i := v.chunks[pos/ChunkSize], int(pos%ChunkSize)
	from := len(dst)
	for _, r := range c.use(i).rows {
		dst = append(dst, r.Alloc)
	}
	dst = append(dst, c.extra(i).stopping...)
	slices.SortFunc(dst[from:], func(a, b *model.Allocation) int { return strings.Compare(a.ID, b.ID) })
	return dst
}

// Allocs yields every allocation: by job, ascending, and in the order of
// AppendJobAllocs within one. Inserting them in this order gives that order
// again.
func (v *View) Allocs() iter.Seq[*model.Allocation] {
	return func(yield func(*model.Allocation) bool) {
		for _, job := range v.sortedJobs() {
			for slot := range v.jobs.at(job).allocs.All {
				if !yield(v.allocs.at(slot)) {
					return
				}
			}
		}
	}
}

// UpsertAllocs stores allocations, or other versions of them, and sets their
// indexes. An allocation keeps its node and its job for life; its job may be
// another version.
func (t *Txn) UpsertAllocs(as ...*model.Allocation) {
	for _, a := range as {
		t.upsertAlloc(a)
	}
}

func (t *Txn) upsertAlloc(a *model.Allocation) {
	t.compileFor(a)
	slot, ok := t.findAlloc(a.ID)
	if !ok {
		t.insertAlloc(a)
		return
	}
	old := t.allocs.at(slot)
	switch {
	case old == a:
		panic("state: allocation " + a.ID + " written again without a copy")
	case old.NodeID != a.NodeID || old.Job.Key() != a.Job.Key():
		panic("state: allocation " + a.ID + " changed its node or job")
	}
	t.stamp(&a.CreateIndex, &a.ModifyIndex, old.CreateIndex)
	if a.Job != old.Job {
		job, r := t.ownJob(a.Job.Key())
		t.meetVersion(job, r, a.Job)
	}
	t.allocs.set(t.owner, slot, a)
	t.account(old, a)
	t.touchAlloc(a)
}

func (t *Txn) insertAlloc(a *model.Allocation) {
	t.stamp(&a.CreateIndex, &a.ModifyIndex, 0)
	slot := t.allocs.insert(t.owner, hashID(a.ID), a)
	job, r := t.ownJob(a.Job.Key())
	t.meetVersion(job, r, a.Job)
	setAt(&t.allocAt, t.owner, slot, r.allocs.Add(t.owner, slot))
	t.account(nil, a)
	t.touchAlloc(a)
}

// meetVersion lists the labels of a version that did not come by UpsertJob.
func (t *Txn) meetVersion(slot int32, r *jobRow, version *model.Job) {
	if version != r.job {
		t.enlistVersion(slot, r, version)
	}
}

// DeleteAllocs forgets allocations; ids that are not there are skipped.
func (t *Txn) DeleteAllocs(ids ...string) {
	for _, id := range ids {
		if slot, ok := t.findAlloc(id); ok {
			t.deleteAlloc(slot)
		}
	}
}

func (t *Txn) deleteAlloc(slot int32) {
	a := t.allocs.at(slot)
	t.account(a, nil)
	job, r := t.ownJob(a.Job.Key())
	r.allocs.Remove(t.owner, t.allocAt.At(int(slot)), func(slot, at int32) {
		t.allocAt.Set(t.owner, int(slot), at)
	})
	t.allocs.delete(t.owner, hashID(a.ID), slot)
	t.releaseJob(job, r)
	t.touchAlloc(a)
}

// compileFor compiles the job version of an allocation that did not come
// through UpsertJob, as when a snapshot is restored. Its resource names were
// accepted once, so they cannot be too many.
func (t *Txn) compileFor(a *model.Allocation) {
	if a.Group.Job == a.Job {
		return
	}
	if !slices.Contains(a.Job.Groups, a.Group) {
		panic("state: group of allocation " + a.ID + " is not of its version of the job")
	}
	if err := t.RequireDimensions(a.Job.Resources()...); err != nil {
		panic("state: " + err.Error())
	}
	a.Job.Compile(t.dims)
}

func (t *Txn) touchAlloc(a *model.Allocation) {
	t.touch(TableAllocs.Of(a.ID))
	t.touch(TableJobAllocs.OfJob(a.Job.Key()))
}
