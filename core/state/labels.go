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
// finds the jobs that may have such work without a look at all of them.

// label is a pair of key and value.
type label struct{ key, value string }

// labelRow is the jobs of which some version, with anything left of it, carried
// a label.
type labelRow struct {
	owner cow.Owner
	label label
	jobs  cow.List
}

// listing is where a job stands in the list of a label.
type listing struct{ row, at int32 }

func hashLabel(l label) uint32 {
	return uint32(xxhash.Sum64String(l.key) ^ xxhash.Sum64String(l.value)*31)
}

func (v *View) findLabel(l label) (int32, bool) {
	return v.labels.index.Find(hashLabel(l), func(slot int32) bool { return v.labels.at(slot).label == l })
}

// Labelled yields the jobs that may have an allocation with all of the labels,
// in no order that means anything. Some of them may not: allocations tell. No
// labels match nothing.
func (v *View) Labelled(labels map[string]string) iter.Seq[model.JobKey] {
	return func(yield func(model.JobKey) bool) {
		key, ok := firstKey(labels)
		if !ok {
			return
		}
		slot, ok := v.findLabel(label{key, labels[key]})
		if !ok {
			return
		}
		for job := range v.labels.at(slot).jobs.All {
			if !yield(v.jobs.at(job).key) {
				return
			}
		}
	}
}

func firstKey(labels map[string]string) (first string, ok bool) {
	for key := range labels {
		if !ok || key < first {
			first, ok = key, true
		}
	}
	return first, ok
}

// enlistLabels adds the job to the lists of the labels that its groups carry.
// It stays on those of earlier versions until the row is released, since their
// allocations may still be there.
func (t *Txn) enlistLabels(slot int32, r *jobRow) {
	for _, l := range labelsOf(r.job) {
		row, ok := t.findLabel(l)
		if ok && slices.ContainsFunc(r.labels, func(have listing) bool { return have.row == row }) {
			continue
		}
		if !ok {
			row = t.labels.insert(t.owner, hashLabel(l), &labelRow{owner: t.owner, label: l})
		}
		at := t.ownLabel(row).jobs.Add(t.owner, slot)
		r.labels = append(r.labels[:len(r.labels):len(r.labels)], listing{row, at})
	}
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

func (t *Txn) ownLabel(slot int32) *labelRow {
	r := t.labels.at(slot)
	if r.owner == t.owner {
		return r
	}
	own := *r
	own.owner = t.owner
	t.labels.set(t.owner, slot, &own)
	return &own
}

// delistLabels takes a job off all of its lists.
func (t *Txn) delistLabels(r *jobRow) {
	for _, l := range r.labels {
		own := t.ownLabel(l.row)
		own.jobs.Remove(t.owner, l.at, func(slot, at int32) { t.relist(slot, l.row, at) })
		if own.jobs.Len() == 0 {
			t.labels.delete(t.owner, hashLabel(own.label), l.row)
		}
	}
	r.labels = nil
}

// relist notes that a job moved within the list of a label.
func (t *Txn) relist(slot, row, at int32) {
	r := t.ownJobAt(slot)
	r.labels = slices.Clone(r.labels)
	for i := range r.labels {
		if r.labels[i].row == row {
			r.labels[i].at = at
		}
	}
}
