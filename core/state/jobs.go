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

// jobRow is everything that belongs to one job key, or to the binding that has
// it. It is there for as long as any of it is.
type jobRow struct {
	owner     cow.Owner
	key       model.JobKey
	job       *model.Job
	older     []*model.Job // versions before job, newest first; replaced whole
	dirty     uint64
	held      PreemptionHold
	allocs    cow.List
	evals     cow.List
	perNodeAt int32 // position in View.perNode; -1 when not listed
	labels    []listing
	binding   *model.Binding      // nil: none; then job is
	assigned  []*model.Assignment // of the binding, ascending by id; replaced whole
	claims    []*model.Claim      // that it has on clusters, ascending by id; replaced whole
}

// empty is whether nothing belongs to the key any more.
func (r *jobRow) empty() bool {
	return r.job == nil && r.binding == nil && r.allocs.Len() == 0 && r.evals.Len() == 0 &&
		len(r.assigned)+len(r.claims) == 0
}

func (v *View) findJob(key model.JobKey) (int32, bool) {
	return v.jobs.index.Find(hashJob(key), func(slot int32) bool { return v.jobs.at(slot).key == key })
}

// jobRow is the row of a key, for reading; nil when there is none.
func (v *View) jobRow(key model.JobKey) *jobRow {
	if slot, ok := v.findJob(key); ok {
		return v.jobs.at(slot)
	}
	return nil
}

// Job is the job under a key; nil when there is none.
func (v *View) Job(key model.JobKey) *model.Job {
	if r := v.jobRow(key); r != nil {
		return r.job
	}
	return nil
}

// JobVersions is the versions of a job that are remembered, newest first: the
// job itself and at most JobVersionsMax-1 before it. None of a job that is not
// there.
func (v *View) JobVersions(key model.JobKey) []*model.Job {
	r := v.jobRow(key)
	if r == nil || r.job == nil {
		return nil
	}
	return append([]*model.Job{r.job}, r.older...)
}

// MaxJobVersions is how many versions of a job are remembered.
const MaxJobVersions = 6

// DirtyIndex is the index of the last change that concerns the job; 0 when nothing
// is known of it.
func (v *View) DirtyIndex(key model.JobKey) uint64 {
	if r := v.jobRow(key); r != nil {
		return r.dirty
	}
	return 0
}

// PreemptionHold is since when what a job lacks waits for free room and may evict nobody: it was
// run by a plan that showed whom it evicts, and that left this without a place. The zero
// Hold is of a job like any other.
type PreemptionHold struct {
	Index uint64
	Time  int64 // Unix nanoseconds
}

// PreemptionHold is the hold on what the job lacks.
func (v *View) PreemptionHold(key model.JobKey) PreemptionHold {
	if r := v.jobRow(key); r != nil {
		return r.held
	}
	return PreemptionHold{}
}

// DirtyIndexes yields every key of which something is known, ascending, with its
// Dirty: what a restore needs beside the jobs, as a deleted job may be dirty.
func (v *View) DirtyIndexes() iter.Seq2[model.JobKey, uint64] {
	return func(yield func(model.JobKey, uint64) bool) {
		for _, slot := range v.sortedJobs() {
			if r := v.jobs.at(slot); !yield(r.key, r.dirty) {
				return
			}
		}
	}
}

// PerNodeJobs yields the jobs of type system and sysbatch in insertion order.
func (v *View) PerNodeJobs() iter.Seq[*model.Job] {
	return func(yield func(*model.Job) bool) {
		for slot := range v.perNode.All {
			if !yield(v.jobs.at(slot).job) {
				return
			}
		}
	}
}

// Jobs yields the jobs, ascending by key.
func (v *View) Jobs() iter.Seq[*model.Job] {
	return func(yield func(*model.Job) bool) { v.eachJob(v.sortedJobs(), yield) }
}

// JobsPrefix yields the jobs of a namespace whose id starts with prefix,
// ascending by id.
func (v *View) JobsPrefix(namespace, prefix string) iter.Seq[*model.Job] {
	return func(yield func(*model.Job) bool) {
		slots := v.sortedJobs()
		from := model.JobKey{Namespace: namespace, ID: prefix}
		slots = slots[sort.Search(len(slots), func(i int) bool {
			return v.jobs.at(slots[i]).key.Compare(from) >= 0
		}):]
		v.eachJob(slots, func(j *model.Job) bool {
			return j.Namespace == namespace && strings.HasPrefix(j.ID, prefix) && yield(j)
		})
	}
}

func (v *View) eachJob(slots []int32, yield func(*model.Job) bool) {
	for _, slot := range slots {
		if j := v.jobs.at(slot).job; j != nil && !yield(j) {
			return
		}
	}
}

// sortedJobs is the rows in use, rows without a job included.
func (v *View) sortedJobs() []int32 {
	return v.jobOrder.slots(v.jobs.size(),
		func(slot int32) bool { return v.jobs.at(slot) != nil },
		func(a, b int32) int { return v.jobs.at(a).key.Compare(v.jobs.at(b).key) })
}

// UpsertJob stores a job, or another version of it. It compiles the job, sets
// its indexes and marks it dirty. It fails with ErrKeyTaken, and for a name of
// a resource too many.
func (t *Txn) UpsertJob(j *model.Job) error {
	if t.Binding(j.Key()) != nil {
		return fmt.Errorf("%w: %s is a binding", ErrKeyTaken, j.Key())
	}
	if err := t.RequireDimensions(j.Resources()...); err != nil {
		return err
	}
	slot, r := t.ownJob(j.Key())
	if r.job == j {
		panic("state: job " + j.Key().String() + " written again without a copy")
	}
	detachGroups(j)
	if r.job != nil {
		t.stamp(&j.CreateIndex, &j.ModifyIndex, r.job.CreateIndex)
		if r.job.Version != j.Version {
			r.older = slices.Insert(slices.Clone(r.older[:min(len(r.older), MaxJobVersions-2)]), 0, r.job)
		}
	} else {
		t.stamp(&j.CreateIndex, &j.ModifyIndex, 0)
	}
	j.Compile(t.dims) // after the indexes: they are part of a group's shape
	t.countJob(r, -1)
	r.job = j
	t.countJob(r, 1)
	t.enlist(slot, r)
	t.dirty(r)
	t.touch(TableJobs.OfJob(r.key))
	t.touch(TableJobVersions.OfJob(r.key))
	return nil
}

// SetOlderVersions puts in the versions of a job before the one it has, newest
// first, as a restore read them. It compiles them.
func (t *Txn) SetOlderVersions(key model.JobKey, older ...*model.Job) error {
	slot, ok := t.findJob(key)
	if !ok || t.jobs.at(slot).job == nil {
		panic("state: versions of job " + key.String() + ", which is not there")
	}
	for _, j := range older {
		if err := t.RequireDimensions(j.Resources()...); err != nil {
			return err
		}
		j.Compile(t.dims)
	}
	t.ownJobAt(slot).older = older
	t.touch(TableJobVersions.OfJob(key))
	return nil
}

// DeleteJob forgets a job. Its allocations and evaluations remain until they
// are deleted.
func (t *Txn) DeleteJob(key model.JobKey) {
	if t.Job(key) == nil {
		return
	}
	slot, r := t.ownJob(key)
	t.countJob(r, -1)
	r.job, r.older, r.held = nil, nil, PreemptionHold{}
	t.enlist(slot, r)
	t.dirty(r)
	t.releaseJob(slot, r)
	t.touch(TableJobs.OfJob(key))
	t.touch(TableJobVersions.OfJob(key))
}

// MarkDirty says that something that concerns the job changed. It does nothing
// for a key of which the state knows nothing.
func (t *Txn) MarkDirty(key model.JobKey) { t.MarkDirtyAt(key, t.index) }

// MarkDirtyAt is MarkDirty with the index that a restore read.
func (t *Txn) MarkDirtyAt(key model.JobKey, index uint64) {
	if _, ok := t.findJob(key); !ok {
		return
	}
	_, r := t.ownJob(key)
	r.dirty = index
	t.touch(TableJobs.OfJob(key))
}

// SetPreemptionHold sets what Held is. It does nothing for a key of which the state knows nothing.
func (t *Txn) SetPreemptionHold(key model.JobKey, h PreemptionHold) {
	slot, ok := t.findJob(key)
	if !ok || t.jobs.at(slot).held == h {
		return
	}
	t.ownJobAt(slot).held = h
	t.touch(TableJobs.OfJob(key))
}

func (t *Txn) dirty(r *jobRow) {
	if !t.restores {
		r.dirty = t.index
	}
}

// ownJob is the row of a key, made or copied for writing.
func (t *Txn) ownJob(key model.JobKey) (int32, *jobRow) {
	slot, ok := t.findJob(key)
	if !ok {
		r := &jobRow{owner: t.owner, key: key, perNodeAt: -1}
		slot = t.jobs.insert(t.owner, hashJob(key), r)
		t.jobOrder = t.jobOrder.with(t.owner, slot)
		return slot, r
	}
	return slot, t.ownJobAt(slot)
}

func (t *Txn) ownJobAt(slot int32) *jobRow {
	r := t.jobs.at(slot)
	if r.owner == t.owner {
		return r
	}
	own := *r
	own.owner = t.owner
	t.jobs.set(t.owner, slot, &own)
	return &own
}

// releaseJob drops the row when nothing belongs to the key any more.
func (t *Txn) releaseJob(slot int32, r *jobRow) {
	if !r.empty() {
		return
	}
	t.delistLabels(r)
	t.jobs.delete(t.owner, hashJob(r.key), slot)
	t.jobOrder = t.jobOrder.with(t.owner, slot)
}

// enlist keeps the lists of jobs that others look up.
func (t *Txn) enlist(slot int32, r *jobRow) {
	switch perNode := r.job != nil && r.job.Type.PerNode(); {
	case perNode && r.perNodeAt < 0:
		r.perNodeAt = t.perNode.Add(t.owner, slot)
	case !perNode && r.perNodeAt >= 0:
		t.perNode.Remove(t.owner, r.perNodeAt, func(slot, at int32) { t.ownJobAt(slot).perNodeAt = at })
		r.perNodeAt = -1
	}
	if r.job != nil {
		t.enlistLabels(slot, r)
	}
}

// detachGroups copies what Compile writes to and an earlier version of the job
// shares: a job is easily copied without its groups.
func detachGroups(j *model.Job) {
	if !slices.ContainsFunc(j.Groups, func(g *model.Group) bool { return g.Job != nil && g.Job != j }) {
		return
	}
	j.Groups = slices.Clone(j.Groups)
	for i, shared := range j.Groups {
		g := *shared
		g.Ask = model.Ask{}
		g.Constraints = slices.Clone(g.Constraints)
		g.Affinities = slices.Clone(g.Affinities)
		g.Colocate, g.Separate = slices.Clone(g.Colocate), slices.Clone(g.Separate)
		g.Devices = slices.Clone(g.Devices)
		for d := range g.Devices {
			g.Devices[d].Constraints = slices.Clone(g.Devices[d].Constraints)
		}
		j.Groups[i] = &g
	}
}
