package state

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// allocTable holds the allocations by ID. Their lists by job are in jobRow, by node in
// Chunk. Ended allocations remain until garbage collection.
type allocTable struct {
	allocs  cow.Table[*model.Allocation]
	allocAt cow.Vec[int32] // by slot: position in jobRow.allocs
}

func (v *allocTable) findAlloc(id string) (int32, bool) {
	return v.allocs.Find(hashID(id), func(slot int32) bool { return v.allocs.At(slot).ID == id })
}

// Alloc returns the allocation with the ID, or nil if there is none.
func (v *allocTable) Alloc(id string) *model.Allocation {
	if slot, ok := v.findAlloc(id); ok {
		return v.allocs.At(slot)
	}
	return nil
}

// AllocCount returns the number of allocations, including ended ones.
func (v *allocTable) AllocCount() int { return v.allocs.Len() }

// JobAllocCount returns the number of allocations of a job, including ended ones.
func (v *jobTable) JobAllocCount(key model.JobKey) int {
	if r := v.jobRow(key); r != nil {
		return r.allocs.Len()
	}
	return 0
}

// AppendJobAllocs appends all allocations of a job, including ended ones, in insertion
// order. dst lets a caller that reads many jobs reuse one slice. It costs the number of
// allocations of the job.
func (v *View) AppendJobAllocs(dst []*model.Allocation, key model.JobKey) []*model.Allocation {
	r := v.jobRow(key)
	if r == nil {
		return dst
	}
	dst = slices.Grow(dst, r.allocs.Len())
	for slot := range r.allocs.All {
		dst = append(dst, v.allocs.At(slot))
	}
	return dst
}

// LastSpec returns the job version of a job's newest allocation, or nil if it has no
// allocation. A purged job has no other specification.
func LastSpec(s *Snapshot, key model.JobKey) *model.Job {
	var last *model.Allocation
	for _, a := range s.AppendJobAllocs(nil, key) {
		if last == nil || a.CreateIndex >= last.CreateIndex {
			last = a
		}
	}
	if last == nil {
		return nil
	}
	return last.Job
}

// Allocs yields every allocation: by job, ascending, and in the order of
// AppendJobAllocs within a job. Inserting them in this order results in that order
// again. A snapshot of the state is written in this order, so that servers that
// restored it agree on insertion order.
func (v *View) Allocs() iter.Seq[*model.Allocation] {
	return func(yield func(*model.Allocation) bool) {
		for _, job := range v.sortedJobs() {
			for slot := range v.jobs.At(job).allocs.All {
				if !yield(v.allocs.At(slot)) {
					return
				}
			}
		}
	}
}

// ChangedAllocs returns the allocations that were written since an earlier snapshot of the
// same store, in the order of Allocs. It costs the number of writes in between.
func (v *View) ChangedAllocs(since *Snapshot) (changed []*model.Allocation) {
	var slots []int
	for slot := range v.allocs.Changed(&since.allocs) {
		a := v.allocs.At(int32(slot))
		if a != nil && (slot >= since.allocs.Size() || a != since.allocs.At(int32(slot))) {
			slots = append(slots, slot)
		}
	}
	slices.SortFunc(slots, func(a, b int) int {
		left, right := v.allocs.At(int32(a)).Job.Key(), v.allocs.At(int32(b)).Job.Key()
		return cmp.Or(left.Compare(right), cmp.Compare(v.allocAt.At(a), v.allocAt.At(b)))
	})
	for _, slot := range slots {
		changed = append(changed, v.allocs.At(int32(slot)))
	}
	return changed
}

// AppendNodeAllocs appends the allocations on a node that have no terminal client
// status, live and stopping, ascending by ID. The node may have been deleted.
func (v *nodeTable) AppendNodeAllocs(dst []*model.Allocation, nodeID string) []*model.Allocation {
	pos, ok := v.findPosition(nodeID)
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

// Upsert stores allocations, or other versions of them, and sets their indexes.
// The node and the job of an allocation must not change; the version of the job may.
// The transaction takes ownership of them. It panics if a caller writes a stored
// version again, because snapshots share it, or moves an allocation: both are defects
// of the caller that would corrupt what other readers see.
func (t AllocWriter) Upsert(as ...*model.Allocation) {
	for _, a := range as {
		t.upsert(a)
	}
}

func (t AllocWriter) upsert(a *model.Allocation) {
	t.compileVersion(a)
	slot, ok := t.findAlloc(a.ID)
	if !ok {
		t.insert(a)
		return
	}
	old := t.allocs.At(slot)
	switch {
	case old == a:
		panic("state: allocation " + a.ID + " written again without a copy")
	case old.NodeID != a.NodeID || old.Job.Key() != a.Job.Key():
		panic("state: allocation " + a.ID + " changed its node or job")
	}
	t.stamp(&a.CreateIndex, &a.ModifyIndex, old.CreateIndex)
	if a.Job != old.Job {
		job, r := t.ownJob(t.owner, a.Job.Key())
		if a.Job != r.job {
			t.addVersionLabels(t.owner, job, r, a.Job)
		}
	}
	t.allocs.Set(t.owner, slot, a)
	t.account(old, a)
	t.touchAlloc(a)
}

// insert stores a new allocation. A version that is not the current one is listed
// under its labels too, since a search by label must find its allocations.
func (t AllocWriter) insert(a *model.Allocation) {
	t.stamp(&a.CreateIndex, &a.ModifyIndex, 0)
	slot := t.allocs.Insert(t.owner, hashID(a.ID), a)
	job, r := t.ownJob(t.owner, a.Job.Key())
	if a.Job != r.job {
		t.addVersionLabels(t.owner, job, r, a.Job)
	}
	setAt(&t.allocAt, t.owner, slot, r.allocs.Add(t.owner, slot))
	t.account(nil, a)
	t.touchAlloc(a)
}

// Delete deletes allocations; missing ones are skipped.
func (t AllocWriter) Delete(ids ...string) {
	for _, id := range ids {
		if slot, ok := t.findAlloc(id); ok {
			t.deleteAt(slot)
		}
	}
}

func (t AllocWriter) deleteAt(slot int32) {
	a := t.allocs.At(slot)
	t.account(a, nil)
	job, r := t.ownJob(t.owner, a.Job.Key())
	// The list may close its holes and move the remaining slots.
	r.allocs.Remove(t.owner, t.allocAt.At(int(slot)), func(slot, at int32) {
		t.allocAt.Set(t.owner, int(slot), at)
	})
	t.allocs.Delete(t.owner, hashID(a.ID), slot)
	t.releaseJob(t.owner, job, r)
	t.touchAlloc(a)
}

// compileVersion compiles the job version of an allocation if UpsertJob did not, as
// when a snapshot is restored. Its resource names were accepted before, so they
// cannot be too many.
func (t AllocWriter) compileVersion(a *model.Allocation) {
	if a.Group.Job == a.Job {
		return
	}
	if !slices.Contains(a.Job.Groups, a.Group) {
		panic("state: group of allocation " + a.ID + " is not part of its job version")
	}
	if err := t.RequireDimensions(a.Job.Resources()...); err != nil {
		panic("state: " + err.Error())
	}
	a.Job.Compile(t.dims)
}

func (t AllocWriter) touchAlloc(a *model.Allocation) {
	t.touch(TableAllocs.Of(a.ID))
	t.touch(TableJobAllocs.OfJob(a.Job.Key()))
}
