package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// An allocation of an all-or-none job may be evicted only if its cohort may,
// wherever the other members are: one of an earlier version with a higher priority
// protects them all. So a change of one member may make the others evictable,
// although nothing changed on their nodes.

// recordCohortChange records the job of an allocation if its live version is new or
// gone and its cohort may become evictable by that.
func (t AllocWriter) recordCohortChange(old, next *model.Allocation, was, is accountState) {
	if t.restores {
		return // the whole state is new
	}
	switch {
	case was == live && is == live && old.Job == next.Job:
		return // only its status changed
	case was != live && (next.Group.MinCount == 0 || !next.Job.AllOrNone):
		return // an added member makes others evictable only if MinCount is set, by raising the surplus
	}
	some := old
	if was != live {
		some = next
	}
	key := some.Job.Key()
	if n := len(t.changedCohorts); n > 0 && t.changedCohorts[n-1] == key {
		return
	}
	if some.Job.AllOrNone || next != nil && next.Job.AllOrNone {
		t.changedCohorts = append(t.changedCohorts, key)
	}
}

// ChangedCohortNodes returns the nodes, ascending, of the cohorts of which the
// entry at this index ended, placed or changed a member. Members there may be
// evictable now, although nothing changed on those nodes.
func (sn *Snapshot) ChangedCohortNodes() (nodes []string) {
	keys := slices.Clone(sn.changedCohorts)
	slices.SortFunc(keys, model.JobKey.Compare)
	for _, key := range slices.Compact(keys) {
		sn.eachLive(key, func(a *model.Allocation) { nodes = append(nodes, a.NodeID) })
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// CohortChangeIndexes returns, by node, the last index at which an all-or-none job
// with an allocation there changed on any node, as far as its retained allocations
// show.
func (sn *Snapshot) CohortChangeIndexes() map[string]uint64 {
	changed := map[string]uint64{}
	for job := range sn.Jobs() {
		if !job.AllOrNone && !sn.hasCohort(job) {
			continue
		}
		newest := job.ModifyIndex
		for slot := range sn.jobRow(job.Key()).allocs.All {
			newest = max(newest, sn.allocs.At(slot).ModifyIndex)
		}
		sn.eachLive(job.Key(), func(a *model.Allocation) { changed[a.NodeID] = max(changed[a.NodeID], newest) })
	}
	return changed
}

// hasCohort reports whether allocations of earlier versions of a job are
// all-or-none.
func (sn *Snapshot) hasCohort(job *model.Job) (some bool) {
	if job.Version > 0 {
		sn.eachLive(job.Key(), func(a *model.Allocation) { some = some || a.Job.AllOrNone })
	}
	return some
}

// eachLive calls visit for the live allocations of a job.
func (sn *Snapshot) eachLive(key model.JobKey, visit func(*model.Allocation)) {
	r := sn.jobRow(key)
	if r == nil {
		return
	}
	for slot := range r.allocs.All {
		if a := sn.allocs.At(slot); a.Live() {
			visit(a)
		}
	}
}
