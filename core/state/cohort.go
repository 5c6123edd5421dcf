package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Whether an allocation of a job that goes whole may be evicted depends on those
// that would go with it, its mates, wherever they are: one with a higher priority,
// of an earlier version, keeps the others. So what happens to one of them may make
// room on the nodes of all, and nothing on those nodes tells.

// regroup notes the job of an allocation of which the live version is new or gone.
func (t *Txn) recordCohortChange(old, next *model.Allocation, was, is accountState) {
	if t.restores {
		return // the whole state is new
	}
	switch {
	case was == live && is == live && old.Job == next.Job:
		return // it began to work, or told how it is: that frees nobody
	case was != live && (next.Group.MinCount == 0 || !next.Job.AllOrNone):
		return // one more only helps where so many stay and the others go alone
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

// ChangedCohortNodes is the nodes of those who go with what the entry at this index ended, placed
// or brought to another version, ascending. They may be evicted now, though nothing
// changed on their nodes.
func (sn *Snapshot) ChangedCohortNodes() (nodes []string) {
	keys := slices.Clone(sn.changedCohorts)
	slices.SortFunc(keys, model.JobKey.Compare)
	for _, key := range slices.Compact(keys) {
		sn.eachLive(key, func(a *model.Allocation) { nodes = append(nodes, a.NodeID) })
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// CohortChangeIndexes is, by node, the last index at which a job that goes whole and has
// something there changed anywhere, as far as its allocations that are known tell.
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

// hasCohort is whether allocations of earlier versions of a job go whole.
func (sn *Snapshot) hasCohort(job *model.Job) (some bool) {
	if job.Version > 0 {
		sn.eachLive(job.Key(), func(a *model.Allocation) { some = some || a.Job.AllOrNone })
	}
	return some
}

// eachLive visits the live allocations of a job.
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
