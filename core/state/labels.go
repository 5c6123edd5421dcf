package state

import (
	"iter"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// Two indexes of jobs by label. A group with co-location or separation terms finds
// the jobs that may have matching allocations, and a group with labels finds the
// jobs with separation terms that may match it, without a scan over all jobs.

type labelIndex uint8

const (
	byLabel      labelIndex = iota // every label of a group
	bySeparation                   // the first label of a separation term
	labelIndexes
)

// label is a pair of key and value.
type label struct{ key, value string }

// A labelRow lists the jobs of which some retained version has the label.
type labelRow struct {
	owner cow.Owner
	label label
	jobs  cow.List
}

// listing is the position of a job in the list of a label.
type listing struct {
	index   labelIndex
	row, at int32
}

func (v *jobTable) findLabel(x labelIndex, l label) (int32, bool) {
	t := &v.labels[x]
	return t.Find(hashLabel(l), func(slot int32) bool { return t.At(slot).label == l })
}

// JobsMatching yields the jobs that may have an allocation with all of the labels, in
// no defined order. The result is a superset: the caller must check the allocations. An
// empty set of labels matches nothing. One label suffices to find a superset: a group
// with all labels has the first of them.
func (v *jobTable) JobsMatching(labels map[string]string) iter.Seq[model.JobKey] {
	return func(yield func(model.JobKey) bool) {
		if key, ok := firstKey(labels); ok {
			v.eachListed(byLabel, label{key, labels[key]}, yield)
		}
	}
}

// JobsSeparatedFrom yields the jobs that may have an allocation with a separation
// term that matches the labels, in no defined order and possibly more than once.
// The result is a superset: the caller must check the allocations.
func (v *jobTable) JobsSeparatedFrom(labels map[string]string) iter.Seq[model.JobKey] {
	return func(yield func(model.JobKey) bool) {
		for key, value := range labels {
			if !v.eachListed(bySeparation, label{key, value}, yield) {
				return
			}
		}
	}
}

// HasPlacementRules reports whether a rule, of the group or of others, may exclude it
// from a node because of other allocations.
func HasPlacementRules(v *View, g *model.Group) bool {
	if len(g.Colocate)+len(g.Separate) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator.CountsAllocations() }) ||
		slices.ContainsFunc(g.Spread, func(s model.Spread) bool { return s.MaxSkew > 0 }) {
		return true
	}
	if len(g.Labels) == 0 {
		return false
	}
	for key := range v.JobsSeparatedFrom(g.Labels) {
		if key.Namespace == g.Job.Namespace {
			return true
		}
	}
	return false
}

func (v *jobTable) eachListed(x labelIndex, l label, yield func(model.JobKey) bool) bool {
	slot, ok := v.findLabel(x, l)
	if !ok {
		return true
	}
	for job := range v.labels[x].At(slot).jobs.All {
		if !yield(v.jobs.At(job).key) {
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

// addVersionLabels adds the job to the lists of the labels and separation terms of a
// version. It remains on the lists of earlier versions until the row is released,
// since their allocations may still exist. After a restore, earlier versions are
// known by their allocations alone.
func (v *jobTable) addVersionLabels(o cow.Owner, slot int32, r *jobRow, version *model.Job) {
	for _, l := range labelsOf(version) {
		v.addLabel(o, byLabel, l, slot, r)
	}
	for _, l := range separationLabelsOf(version) {
		v.addLabel(o, bySeparation, l, slot, r)
	}
}

func (v *jobTable) addLabel(o cow.Owner, x labelIndex, l label, slot int32, r *jobRow) {
	row, ok := v.findLabel(x, l)
	if ok && slices.ContainsFunc(r.labels, func(have listing) bool { return have.index == x && have.row == row }) {
		return
	}
	if !ok {
		row = v.labels[x].Insert(o, hashLabel(l), &labelRow{owner: o, label: l})
	}
	at := v.ownLabel(o, x, row).jobs.Add(o, slot)
	r.labels = append(slices.Clip(r.labels), listing{x, row, at})
}

// labelsOf returns the labels of a job's groups in a fixed order.
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

// separationLabelsOf returns the first labels of a job's separation terms in a fixed
// order.
func separationLabelsOf(j *model.Job) (list []label) {
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

func (v *jobTable) ownLabel(o cow.Owner, x labelIndex, slot int32) *labelRow {
	r := v.labels[x].At(slot)
	if r.owner == o {
		return r
	}
	own := *r
	own.owner = o
	v.labels[x].Set(o, slot, &own)
	return &own
}

// removeLabels removes a job from all lists. It runs when the row is released; until
// then a job may only gain listings.
func (v *jobTable) removeLabels(o cow.Owner, r *jobRow) {
	for _, l := range r.labels {
		own := v.ownLabel(o, l.index, l.row)
		own.jobs.Remove(o, l.at, func(slot, at int32) { v.moveListing(o, slot, listing{l.index, l.row, at}) })
		if own.jobs.Len() == 0 {
			v.labels[l.index].Delete(o, hashLabel(own.label), l.row)
		}
	}
	r.labels = nil
}

// moveListing records that a job moved within the list of a label.
func (v *jobTable) moveListing(o cow.Owner, slot int32, to listing) {
	r := v.ownJobAt(o, slot)
	r.labels = slices.Clone(r.labels)
	for i := range r.labels {
		if l := &r.labels[i]; l.index == to.index && l.row == to.row {
			l.at = to.at
		}
	}
}
