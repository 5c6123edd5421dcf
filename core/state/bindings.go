package state

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Bindings live in the rows of jobs: the two share one space of keys, so that
// an evaluation names either and knows by itself what is dirty.

// ErrKeyTaken means that a job cannot have the key of a binding, or the other
// way round.
var ErrKeyTaken = errors.New("jobs and bindings share one space of names")

// Binding is the binding under a key; nil when there is none.
func (v *View) Binding(key model.JobKey) *model.Binding {
	if r := v.jobRow(key); r != nil {
		return r.binding
	}
	return nil
}

// Bindings yields the bindings, ascending by key.
func (v *View) Bindings() iter.Seq[*model.Binding] {
	return func(yield func(*model.Binding) bool) {
		if v.bindings == 0 {
			return
		}
		for _, slot := range v.sortedJobs() {
			if b := v.jobs.at(slot).binding; b != nil && !yield(b) {
				return
			}
		}
	}
}

// BindingCount is the number of bindings.
func (v *View) BindingCount() int { return v.bindings }

// UpsertBinding stores a binding, or another version of it. It compiles the
// binding, sets its indexes and marks it dirty. It fails with ErrKeyTaken.
func (t *Txn) UpsertBinding(b *model.Binding) error {
	if t.Job(b.Key()) != nil {
		return fmt.Errorf("%w: %s is a job", ErrKeyTaken, b.Key())
	}
	if err := t.RequireDimensions(b.Resources); err != nil {
		return err
	}
	_, r := t.ownJob(b.Key())
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
	t.dirty(r)
	t.touch(TableBindings.OfJob(r.key))
	return nil
}

// DeleteBinding forgets a binding, and what it claimed. Its assignments and
// evaluations remain until they are deleted.
func (t *Txn) DeleteBinding(key model.JobKey) {
	if t.Binding(key) == nil {
		return
	}
	t.releaseClusterClaims(key)
	slot, r := t.ownJob(key)
	r.binding = nil
	t.bindings--
	t.dirty(r)
	t.releaseJob(slot, r)
	t.touch(TableBindings.OfJob(key))
}

// releaseClusterClaims deletes what a binding had reserved.
func (t *Txn) releaseClusterClaims(claimant model.JobKey) {
	for _, id := range t.ClaimIDs(claimant) {
		t.DeleteClaim(id)
	}
}

// ClaimIDs is the ids of the claims that a binding has on clusters, ascending.
func (v *View) ClaimIDs(claimant model.JobKey) (ids []string) {
	if v.claims.len() == 0 {
		return nil
	}
	if r := v.jobRow(claimant); r != nil {
		for _, c := range r.claims {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// HasClaimOn is whether a binding has a claim on a cluster.
func (v *View) HasClaimOn(cluster string, claimant model.JobKey) bool {
	return slices.ContainsFunc(v.ClusterClaims(cluster), func(c *model.Claim) bool { return c.Claimant == claimant })
}

func (v *View) findAssignment(id string) (int32, bool) {
	return v.assignments.index.Find(hashID(id), func(slot int32) bool { return v.assignments.at(slot).ID == id })
}

// Assignment is the assignment with this id; nil when there is none.
func (v *View) Assignment(id string) *model.Assignment {
	if slot, ok := v.findAssignment(id); ok {
		return v.assignments.at(slot)
	}
	return nil
}

// AssignmentCount is the number of assignments, ended ones included.
func (v *View) AssignmentCount() int { return v.assignments.len() }

// BindingAssignments is all assignments of a binding, ended ones included,
// ascending by id. The caller must not change it.
func (v *View) BindingAssignments(key model.JobKey) []*model.Assignment {
	if r := v.jobRow(key); r != nil {
		return r.assigned
	}
	return nil
}

// Assignments yields every assignment: by binding, ascending, and by id within
// one.
func (v *View) Assignments() iter.Seq[*model.Assignment] {
	return func(yield func(*model.Assignment) bool) {
		if v.assignments.len() == 0 {
			return
		}
		for _, slot := range v.sortedJobs() {
			for _, a := range v.jobs.at(slot).assigned {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// UpsertAssignment stores an assignment, or another version of it, and sets its
// indexes. It keeps its binding and its cluster for life.
func (t *Txn) UpsertAssignment(a *model.Assignment) {
	job, r := t.ownJob(a.Binding)
	at, found := findAssigned(r.assigned, a.ID)
	var old *model.Assignment
	if slot, ok := t.findAssignment(a.ID); ok {
		old = t.assignments.at(slot)
		switch {
		case old == a:
			panic("state: assignment " + a.ID + " written again without a copy")
		case !found || old.ClusterID != a.ClusterID:
			panic("state: assignment " + a.ID + " changed its cluster or binding")
		}
		t.stamp(&a.CreateIndex, &a.ModifyIndex, old.CreateIndex)
		t.assignments.set(t.owner, slot, a)
	} else {
		t.stamp(&a.CreateIndex, &a.ModifyIndex, 0)
		t.assignments.insert(t.owner, hashID(a.ID), a)
	}
	r.assigned = slices.Clone(r.assigned)
	if found {
		r.assigned[at] = a
	} else {
		r.assigned = slices.Insert(r.assigned, at, a)
	}
	t.accountAssignment(job, old, a)
	t.touchAssignment(a)
}

// DeleteAssignment forgets an assignment, if it is there.
func (t *Txn) DeleteAssignment(id string) {
	slot, ok := t.findAssignment(id)
	if !ok {
		return
	}
	a := t.assignments.at(slot)
	t.assignments.delete(t.owner, hashID(id), slot)
	job, r := t.ownJob(a.Binding)
	at, _ := findAssigned(r.assigned, id)
	r.assigned = slices.Delete(slices.Clone(r.assigned), at, at+1)
	t.accountAssignment(job, a, nil)
	t.releaseJob(job, r)
	t.touchAssignment(a)
}

func (t *Txn) touchAssignment(a *model.Assignment) {
	t.touch(TableAssignments.Of(a.ID))
	t.touch(TableBindings.OfJob(a.Binding))
}
