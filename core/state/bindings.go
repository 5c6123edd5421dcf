package state

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// ErrKeyTaken means that a job cannot have the key of a binding, or vice versa.
var ErrKeyTaken = errors.New("jobs and bindings share one space of names")

// assignmentTable holds the assignments by ID. Their lists by binding are in jobRow, by
// cluster in clusterRow. They have no order of their own, since all lists that readers
// see are by owner.
type assignmentTable struct {
	assignments cow.Table[*model.Assignment]
}

// Binding returns the binding with the key, or nil if there is none.
func (v *jobTable) Binding(key model.JobKey) *model.Binding {
	if r := v.jobRow(key); r != nil {
		return r.binding
	}
	return nil
}

// Bindings yields the bindings, ascending by key.
func (v *jobTable) Bindings() iter.Seq[*model.Binding] {
	return func(yield func(*model.Binding) bool) {
		// A walk over the rows of all jobs would find none.
		if v.bindings == 0 {
			return
		}
		for _, slot := range v.sortedJobs() {
			if b := v.jobs.At(slot).binding; b != nil && !yield(b) {
				return
			}
		}
	}
}

// BindingCount returns the number of bindings.
func (v *jobTable) BindingCount() int { return v.bindings }

// BindingAssignments returns all assignments of a binding, including ended ones,
// ascending by ID. The slice is shared and read-only.
func (v *jobTable) BindingAssignments(key model.JobKey) []*model.Assignment {
	if r := v.jobRow(key); r != nil {
		return r.assigned
	}
	return nil
}

// ClaimIDs returns the IDs of the claims of a binding on clusters, ascending. They are
// copied, because deleting a claim replaces the list that it is in.
func (v *View) ClaimIDs(claimant model.JobKey) (ids []string) {
	if v.claims.Len() == 0 {
		return nil
	}
	if r := v.jobRow(claimant); r != nil {
		for _, c := range r.claims {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func (v *assignmentTable) findAssignment(id string) (int32, bool) {
	return v.assignments.Find(hashID(id), func(slot int32) bool { return v.assignments.At(slot).ID == id })
}

// Assignment returns the assignment with the ID, or nil if there is none.
func (v *assignmentTable) Assignment(id string) *model.Assignment {
	if slot, ok := v.findAssignment(id); ok {
		return v.assignments.At(slot)
	}
	return nil
}

// AssignmentCount returns the number of assignments, including ended ones.
func (v *assignmentTable) AssignmentCount() int { return v.assignments.Len() }

// Assignments yields every assignment: by binding, ascending, and by ID within a
// binding.
func (v *View) Assignments() iter.Seq[*model.Assignment] {
	return func(yield func(*model.Assignment) bool) {
		if v.assignments.Len() == 0 {
			return
		}
		for _, slot := range v.sortedJobs() {
			for _, a := range v.jobs.At(slot).assigned {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// Upsert stores a binding, or another version of it. It compiles the binding,
// sets its indexes and marks it dirty. It returns ErrKeyTaken if the key is a job's,
// and model.ErrTooManyDimensions if it names too many resources.
func (t BindingWriter) Upsert(b *model.Binding) error {
	if t.Job(b.Key()) != nil {
		return fmt.Errorf("%w: %s is a job", ErrKeyTaken, b.Key())
	}
	if err := t.RequireDimensions(b.Resources); err != nil {
		return err
	}
	_, r := t.ownJob(t.owner, b.Key())
	if r.binding == b {
		panic("state: binding " + b.Key().String() + " written again without a copy")
	}
	created := uint64(0)
	if r.binding != nil {
		created = r.binding.CreateIndex
		b.Constraints = slices.Clone(b.Constraints) // Compile writes to them, and an earlier version may share them
	} else {
		t.bindings++
	}
	t.stamp(&b.CreateIndex, &b.ModifyIndex, created)
	b.Compile(t.dims)
	r.binding = b
	t.markRowDirty(r)
	t.touch(TableBindings.OfJob(r.key))
	return nil
}

// Delete deletes a binding and its claims, if it exists. Its assignments and
// evaluations remain until they are deleted. A claim without its claimant would reserve
// capacity for ever.
func (t BindingWriter) Delete(key model.JobKey) {
	if t.Binding(key) == nil {
		return
	}
	for _, id := range t.ClaimIDs(key) {
		ClaimWriter(t).Delete(id)
	}
	slot, r := t.ownJob(t.owner, key)
	r.binding = nil
	t.bindings--
	t.markRowDirty(r)
	t.releaseJob(t.owner, slot, r)
	t.touch(TableBindings.OfJob(key))
}

// Upsert stores an assignment, or another version of it, and sets its
// indexes. Its binding and its cluster must not change. It panics if they do, or if a
// stored version is written again without a copy, since snapshots share it. It costs a
// copy of the binding's list and of the cluster's.
func (t AssignmentWriter) Upsert(a *model.Assignment) {
	job, r := t.ownJob(t.owner, a.Binding)
	at, found := searchAssignment(r.assigned, a.ID)
	var old *model.Assignment
	if slot, ok := t.findAssignment(a.ID); ok {
		old = t.assignments.At(slot)
		switch {
		case old == a:
			panic("state: assignment " + a.ID + " written again without a copy")
		case !found || old.ClusterID != a.ClusterID:
			panic("state: assignment " + a.ID + " changed its cluster or binding")
		}
		t.stamp(&a.CreateIndex, &a.ModifyIndex, old.CreateIndex)
		t.assignments.Set(t.owner, slot, a)
	} else {
		t.stamp(&a.CreateIndex, &a.ModifyIndex, 0)
		t.assignments.Insert(t.owner, hashID(a.ID), a)
	}
	r.assigned = slices.Clone(r.assigned)
	if found {
		r.assigned[at] = a
	} else {
		r.assigned = slices.Insert(r.assigned, at, a)
	}
	t.account(job, old, a)
	t.touchAssignment(a)
}

// Delete deletes an assignment, if it exists.
func (t AssignmentWriter) Delete(id string) {
	slot, ok := t.findAssignment(id)
	if !ok {
		return
	}
	a := t.assignments.At(slot)
	t.assignments.Delete(t.owner, hashID(id), slot)
	job, r := t.ownJob(t.owner, a.Binding)
	at, _ := searchAssignment(r.assigned, id)
	r.assigned = slices.Delete(slices.Clone(r.assigned), at, at+1)
	t.account(job, a, nil)
	t.releaseJob(t.owner, job, r)
	t.touchAssignment(a)
}

func (t AssignmentWriter) touchAssignment(a *model.Assignment) {
	t.touch(TableAssignments.Of(a.ID))
	t.touch(TableBindings.OfJob(a.Binding))
}
