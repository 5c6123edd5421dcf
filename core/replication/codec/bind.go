package codec

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// BindPlan replaces the references of a decoded plan by the job versions of a state,
// which must be at least at the plan's snapshot. It returns an error if a version no
// longer exists: the plan is out of date. Groups of the plan without allocations have
// no version and are left as they are.
func BindPlan(p *model.Plan, snap *state.Snapshot) error {
	versions := map[*model.Job]*model.Job{}
	for i := range p.Groups {
		for _, list := range [][]*model.Allocation{p.Groups[i].Placements, p.Groups[i].Updates} {
			for _, alloc := range list {
				ref := alloc.Job
				job, ok := versions[ref]
				if !ok {
					job = FindVersion(&snap.View, ref)
					versions[ref] = job
				}
				if Bind(alloc, job); alloc.Group == nil {
					return fmt.Errorf("version %d of job %s no longer exists, or lacks a group of the plan", ref.ModifyIndex, ref.Key())
				}
			}
		}
	}
	return nil
}

// Bind replaces an allocation's reference by a job version. The group becomes nil if
// the version is nil or lacks the group. alloc is changed in place; it must not be
// shared yet.
func Bind(alloc *model.Allocation, version *model.Job) {
	if version == nil {
		alloc.Group = nil
		return
	}
	alloc.Job, alloc.Group = version, version.Group(alloc.Group.Name)
}

// FindVersion returns the job version with a reference's ModifyIndex, or nil if it
// is gone. Versions that the job no longer retains are found through its
// allocations, at a cost proportional to their number.
func FindVersion(v *state.View, ref *model.Job) *model.Job {
	for _, j := range v.JobVersions(ref.Key()) {
		if j.ModifyIndex == ref.ModifyIndex {
			return j
		}
	}
	for _, alloc := range v.AppendJobAllocs(nil, ref.Key()) {
		if alloc.Job.ModifyIndex == ref.ModifyIndex {
			return alloc.Job
		}
	}
	return nil
}
