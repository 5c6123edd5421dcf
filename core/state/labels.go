package state

import (
	"iter"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// Jobs by label: whoever must be beside or apart from work with certain labels
// finds the jobs that may have such work, and whoever carries labels finds the
// jobs that may want to be apart from it, without a look at all of them.

// labelIndex is one of the two.
type labelIndex uint8

const (
	carriers   labelIndex = iota // by every label of a group
	separators                   // by the first label of a separate term
	labelIndexes
)

// label is a pair of key and value.
type label struct{ key, value string }

// labelRow is the jobs of which some version, with anything left of it, is
// listed under a label.
type labelRow struct {
	owner cow.Owner
	label label
	jobs  cow.List
}

// listing is where a job stands in the list of a label.
type listing struct {
	index   labelIndex
	row, at int32
}

func hashLabel(l label) uint32 {
	return uint32(xxhash.Sum64String(l.key) ^ xxhash.Sum64String(l.value)*31)
}

func (v *View) findLabel(x labelIndex, l label) (int32, bool) {
	t := &v.labels[x]
	return t.index.Find(hashLabel(l), func(slot int32) bool { return t.at(slot).label == l })
}

// JobsMatching yields the jobs that may have an allocation with all of the labels,
// in no order that means anything. Some of them may not: allocations tell. No
// labels match nothing.
func (v *View) JobsMatching(labels map[string]string) iter.Seq[model.JobKey] {
	return func(yield func(model.JobKey) bool) {
		if key, ok := firstKey(labels); ok {
			v.eachListed(carriers, label{key, labels[key]}, yield)
		}
	}
}

// JobsSeparatedFrom yields the jobs that may have an allocation with a separate term
// that matches the labels, in no order that means anything; a job may come more
// than once. Some of them may not: allocations tell.
func (v *View) JobsSeparatedFrom(labels map[string]string) iter.Seq[model.JobKey] {
	return func(yield func(model.JobKey) bool) {
		for key, value := range labels {
			if !v.eachListed(separators, label{key, value}, yield) {
				return
			}
		}
	}
}

func (v *View) eachListed(x labelIndex, l label, yield func(model.JobKey) bool) bool {
	slot, ok := v.findLabel(x, l)
	if !ok {
		return true
	}
	for job := range v.labels[x].at(slot).jobs.All {
		if !yield(v.jobs.at(job).key) {
			return false
		}
	}
	return true
}

func firstKey(labels map[string]string) (first string, ok bool) {
	for key := range labels {
		if !ok || key < first {
			first, ok = key, true
		}
	}
	return first, ok
}

// enlistLabels adds the job to the lists of the labels that its groups carry
// and want to be apart from. It stays on those of earlier versions until the
// row is released, since their allocations may still be there.
func (t *Txn) enlistLabels(slot int32, r *jobRow) { t.enlistVersion(slot, r, r.job) }

// enlistVersion is enlistLabels for a version that allocations have. It differs
// from the job's own after a restore, which sees earlier versions only there.
func (t *Txn) enlistVersion(slot int32, r *jobRow, version *model.Job) {
	for _, l := range labelsOf(version) {
		t.enlistLabel(carriers, l, slot, r)
	}
	for _, l := range termsOf(version) {
		t.enlistLabel(separators, l, slot, r)
	}
}

func (t *Txn) enlistLabel(x labelIndex, l label, slot int32, r *jobRow) {
	row, ok := t.findLabel(x, l)
	if ok && slices.ContainsFunc(r.labels, func(have listing) bool { return have.index == x && have.row == row }) {
		return
	}
	if !ok {
		row = t.labels[x].insert(t.owner, hashLabel(l), &labelRow{owner: t.owner, label: l})
	}
	at := t.ownLabel(x, row).jobs.Add(t.owner, slot)
	r.labels = append(slices.Clip(r.labels), listing{x, row, at})
}

// labelsOf lists the labels of a job's groups in a fixed order.
func labelsOf(j *model.Job) (list []label) {
	for _, g := range j.Groups {
		for _, key := range slices.Sorted(maps.Keys(g.Labels)) {
			if l := (label{key, g.Labels[key]}); !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	return list
}

// termsOf lists the first labels of a job's separate terms in a fixed order.
func termsOf(j *model.Job) (list []label) {
	for _, g := range j.Groups {
		for i := range g.Separate {
			key, ok := firstKey(g.Separate[i].Labels)
			if l := (label{key, g.Separate[i].Labels[key]}); ok && !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	return list
}

func (t *Txn) ownLabel(x labelIndex, slot int32) *labelRow {
	r := t.labels[x].at(slot)
	if r.owner == t.owner {
		return r
	}
	own := *r
	own.owner = t.owner
	t.labels[x].set(t.owner, slot, &own)
	return &own
}

// delistLabels takes a job off all of its lists.
func (t *Txn) delistLabels(r *jobRow) {
	for _, l := range r.labels {
		own := t.ownLabel(l.index, l.row)
		own.jobs.Remove(t.owner, l.at, func(slot, at int32) { t.relist(slot, listing{l.index, l.row, at}) })
		if own.jobs.Len() == 0 {
			t.labels[l.index].delete(t.owner, hashLabel(own.label), l.row)
		}
	}
	r.labels = nil
}

// relist notes that a job moved within the list of a label.
func (t *Txn) relist(slot int32, to listing) {
	r := t.ownJobAt(slot)
	r.labels = slices.Clone(r.labels)
	for i := range r.labels {
		if l := &r.labels[i]; l.index == to.index && l.row == to.row {
			l.at = to.at
		}
	}
}
