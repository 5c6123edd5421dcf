package state

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// MaxJobVersions is the number of versions of a job that the state retains.
const MaxJobVersions = 6

// jobTable holds a row for each key of a job or binding. The two share one space of
// keys, so that an evaluation names either. A key keeps its row after the job is
// deleted, as long as allocations, evaluations or assignments exist.
type jobTable struct {
	jobs     cow.Table[*jobRow]
	jobOrder *cow.Ordering
	perNode  cow.List // rows of jobs of type system and sysbatch
	labels   [labelIndexes]cow.Table[*labelRow]
	bindings int // number of rows that hold a binding
}

func newJobTable() jobTable { return jobTable{jobOrder: &cow.Ordering{}} }

// A jobRow is all that belongs to one key. It exists as long as any of it does.
type jobRow struct {
	owner     cow.Owner
	key       model.JobKey
	job       *model.Job
	older     []*model.Job // versions before job, newest first; replaced as a whole
	dirty     uint64       // see DirtyIndex
	held      PreemptionHold
	allocs    cow.List // slots of allocTable, in insertion order
	evals     cow.List // slots of evalTable, in insertion order
	perNodeAt int32    // position in jobTable.perNode; -1 if not listed
	labels    []listing
	binding   *model.Binding      // Invariant: job and binding are not both set.
	assigned  []*model.Assignment // of the binding, ascending by ID; replaced as a whole
	claims    []*model.Claim      // of the binding on clusters, ascending by ID; replaced as a whole
}

// isEmpty reports whether nothing belongs to the key any more.
func (r *jobRow) isEmpty() bool {
	return r.job == nil && r.binding == nil && r.allocs.Len() == 0 && r.evals.Len() == 0 &&
		len(r.assigned)+len(r.claims) == 0
}

// A PreemptionHold records that a job was run by a confirmed plan. Instances that the
// plan did not place wait for free capacity and may not evict, since the user did
// not approve other victims. The zero value means that there is no hold.
type PreemptionHold struct {
	Index uint64
	Time  int64 // Unix nanoseconds
}

func (v *jobTable) findJob(key model.JobKey) (int32, bool) {
	return v.jobs.Find(hashJob(key), func(slot int32) bool { return v.jobs.At(slot).key == key })
}

// jobRow returns the row of a key for reading, or nil if there is none.
func (v *jobTable) jobRow(key model.JobKey) *jobRow {
	if slot, ok := v.findJob(key); ok {
		return v.jobs.At(slot)
	}
	return nil
}

// Job returns the job with the key, or nil if there is none.
func (v *jobTable) Job(key model.JobKey) *model.Job {
	if r := v.jobRow(key); r != nil {
		return r.job
	}
	return nil
}

// JobVersions returns the retained versions of a job, newest first: the job itself
// and at most MaxJobVersions-1 before it. It returns nil if there is no such job.
func (v *jobTable) JobVersions(key model.JobKey) []*model.Job {
	r := v.jobRow(key)
	if r == nil || r.job == nil {
		return nil
	}
	return append([]*model.Job{r.job}, r.older...)
}

// DirtyIndex returns the index of the last change that concerns the job or binding, or
// 0 if the key is unknown. A plan that was made on an older index may have missed that
// change.
func (v *jobTable) DirtyIndex(key model.JobKey) uint64 {
	if r := v.jobRow(key); r != nil {
		return r.dirty
	}
	return 0
}

// PreemptionHold returns the hold on preemption by the job.
func (v *jobTable) PreemptionHold(key model.JobKey) PreemptionHold {
	if r := v.jobRow(key); r != nil {
		return r.held
	}
	return PreemptionHold{}
}

// DirtyIndexes yields every known key, ascending, with its DirtyIndex. A restore
// needs it in addition to the jobs, as a deleted job may be dirty.
func (v *jobTable) DirtyIndexes() iter.Seq2[model.JobKey, uint64] {
	return func(yield func(model.JobKey, uint64) bool) {
		for _, slot := range v.sortedJobs() {
			if r := v.jobs.At(slot); !yield(r.key, r.dirty) {
				return
			}
		}
	}
}

// PerNodeJobs yields the jobs of type system and sysbatch in insertion order.
func (v *jobTable) PerNodeJobs() iter.Seq[*model.Job] {
	return func(yield func(*model.Job) bool) {
		for slot := range v.perNode.All {
			if !yield(v.jobs.At(slot).job) {
				return
			}
		}
	}
}

// Jobs yields the jobs, ascending by key.
func (v *jobTable) Jobs() iter.Seq[*model.Job] {
	return func(yield func(*model.Job) bool) { v.eachJob(v.sortedJobs(), yield) }
}

// JobsPrefix yields the jobs of a namespace by ID prefix, ascending by ID.
func (v *jobTable) JobsPrefix(namespace, prefix string) iter.Seq[*model.Job] {
	return func(yield func(*model.Job) bool) {
		slots := v.sortedJobs()
		from := model.JobKey{Namespace: namespace, ID: prefix}
		slots = slots[sort.Search(len(slots), func(i int) bool {
			return v.jobs.At(slots[i]).key.Compare(from) >= 0
		}):]
		v.eachJob(slots, func(j *model.Job) bool {
			return j.Namespace == namespace && strings.HasPrefix(j.ID, prefix) && yield(j)
		})
	}
}

func (v *jobTable) eachJob(slots []int32, yield func(*model.Job) bool) {
	for _, slot := range slots {
		if j := v.jobs.At(slot).job; j != nil && !yield(j) {
			return
		}
	}
}

// sortedJobs returns the rows in use, including rows without a job.
func (v *jobTable) sortedJobs() []int32 {
	return v.jobOrder.Slots(v.jobs.Size(),
		func(slot int32) bool { return v.jobs.At(slot) != nil },
		func(a, b int32) int { return v.jobs.At(a).key.Compare(v.jobs.At(b).key) })
}

// ownJob returns the row of a key for writing. It inserts the row if there is none.
func (v *jobTable) ownJob(o cow.Owner, key model.JobKey) (int32, *jobRow) {
	slot, ok := v.findJob(key)
	if !ok {
		r := &jobRow{owner: o, key: key, perNodeAt: -1}
		slot = v.jobs.Insert(o, hashJob(key), r)
		v.jobOrder = v.jobOrder.With(o, slot)
		return slot, r
	}
	return slot, v.ownJobAt(o, slot)
}

func (v *jobTable) ownJobAt(o cow.Owner, slot int32) *jobRow {
	r := v.jobs.At(slot)
	if r.owner == o {
		return r
	}
	own := *r
	own.owner = o
	v.jobs.Set(o, slot, &own)
	return &own
}

// releaseJob deletes the row if nothing belongs to the key any more.
func (v *jobTable) releaseJob(o cow.Owner, slot int32, r *jobRow) {
	if !r.isEmpty() {
		return
	}
	v.removeLabels(o, r)
	v.jobs.Delete(o, hashJob(r.key), slot)
	v.jobOrder = v.jobOrder.With(o, slot)
}

// updateLists updates the lists of jobs by type and by label.
func (v *jobTable) updateLists(o cow.Owner, slot int32, r *jobRow) {
	switch perNode := r.job != nil && r.job.Type.PerNode(); {
	case perNode && r.perNodeAt < 0:
		r.perNodeAt = v.perNode.Add(o, slot)
	case !perNode && r.perNodeAt >= 0:
		v.perNode.Remove(o, r.perNodeAt, func(slot, at int32) { v.ownJobAt(o, slot).perNodeAt = at })
		r.perNodeAt = -1
	}
	if r.job != nil {
		v.addVersionLabels(o, slot, r, r.job)
	}
}

// Upsert stores a job, or another version of it. It compiles the job, sets its
// indexes and marks it dirty. It returns ErrKeyTaken if the key is a binding's, and
// model.ErrTooManyDimensions if it names too many resources. It panics if a stored
// version is written again without a copy, since snapshots share it. Nothing is written
// if it returns an error.
func (t JobWriter) Upsert(j *model.Job) error {
	if t.Binding(j.Key()) != nil {
		return fmt.Errorf("%w: %s is a binding", ErrKeyTaken, j.Key())
	}
	if err := t.RequireDimensions(j.Resources()...); err != nil {
		return err
	}
	slot, r := t.ownJob(t.owner, j.Key())
	if r.job == j {
		panic("state: job " + j.Key().String() + " written again without a copy")
	}
	j.DetachGroups()
	if r.job != nil {
		t.stamp(&j.CreateIndex, &j.ModifyIndex, r.job.CreateIndex)
		if r.job.Version != j.Version {
			r.older = slices.Insert(slices.Clone(r.older[:min(len(r.older), MaxJobVersions-2)]), 0, r.job)
		}
	} else {
		t.stamp(&j.CreateIndex, &j.ModifyIndex, 0)
	}
	j.Compile(t.dims) // after the indexes: they are part of the equivalence class
	BudgetWriter(t).countJob(r, -1)
	r.job = j
	BudgetWriter(t).countJob(r, 1)
	t.updateLists(t.owner, slot, r)
	t.markRowDirty(r)
	t.touch(TableJobs.OfJob(r.key))
	t.touch(TableJobVersions.OfJob(r.key))
	return nil
}

// SetOlderVersions sets the versions of a job before its own, newest first, as a
// restore reads them. It compiles them.
func (t JobWriter) SetOlderVersions(key model.JobKey, older ...*model.Job) error {
	slot, ok := t.findJob(key)
	if !ok || t.jobs.At(slot).job == nil {
		panic("state: older versions of unknown job " + key.String())
	}
	for _, j := range older {
		if err := t.RequireDimensions(j.Resources()...); err != nil {
			return err
		}
		j.Compile(t.dims)
	}
	t.ownJobAt(t.owner, slot).older = older
	t.touch(TableJobVersions.OfJob(key))
	return nil
}

// Delete deletes a job, if it exists. Its allocations and evaluations remain until
// they are deleted. The row is released last, when nothing refers to it.
func (t JobWriter) Delete(key model.JobKey) {
	if t.Job(key) == nil {
		return
	}
	slot, r := t.ownJob(t.owner, key)
	BudgetWriter(t).countJob(r, -1)
	r.job, r.older, r.held = nil, nil, PreemptionHold{}
	t.updateLists(t.owner, slot, r)
	t.markRowDirty(r)
	t.releaseJob(t.owner, slot, r)
	t.touch(TableJobs.OfJob(key))
	t.touch(TableJobVersions.OfJob(key))
}

// MarkDirty records that something that concerns the job or binding changed. It
// does nothing if the key is unknown.
func (t JobWriter) MarkDirty(key model.JobKey) { t.MarkDirtyAt(key, t.index) }

// MarkDirtyAt is MarkDirty with the index that a restore reads.
func (t JobWriter) MarkDirtyAt(key model.JobKey, index uint64) {
	if _, ok := t.findJob(key); !ok {
		return
	}
	_, r := t.ownJob(t.owner, key)
	r.dirty = index
	t.touch(TableJobs.OfJob(key))
}

// SetPreemptionHold sets the hold of a job. It does nothing if the key is unknown.
func (t JobWriter) SetPreemptionHold(key model.JobKey, h PreemptionHold) {
	slot, ok := t.findJob(key)
	if !ok || t.jobs.At(slot).held == h {
		return
	}
	t.ownJobAt(t.owner, slot).held = h
	t.touch(TableJobs.OfJob(key))
}

func (t *branch) markRowDirty(r *jobRow) {
	if !t.restores {
		r.dirty = t.index
	}
}
