package endpoint

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// rejections returns the reasons for which the applier would reject a plan now.
func (p *jobPlanner) rejections(snap *state.Snapshot, c *replication.RegisterJob) []string {
	job, err := cloneJob(c.Job)
	if err != nil {
		return []string{err.Error()}
	}
	old := snap.Job(job.Key())
	after, err := withJob(snap, job, old, specChanged(old, job))
	if err != nil {
		return []string{err.Error()}
	}
	stored := after.Job(job.Key())
	var list []string
	for _, bp := range c.Batch.Plans {
		plan := *bp.Plan
		plan.Groups = bindGroups(plan.Groups, stored, after)
		result, err := planner.Verify(after, &plan, p.writer.Now(), &feasible.Verifier{}, &planner.Scratch{})
		if err != nil {
			return []string{err.Error()}
		}
		for _, r := range result.Rejected {
			list = append(list, fmt.Sprintf("node %s: %s", r.NodeID, r.Reason))
		}
		for i := range plan.Groups {
			if why := unsuitableNode(after, &plan.Groups[i]); why != "" {
				list = append(list, why)
			}
		}
		for _, g := range bp.Plan.Groups {
			list = append(list, endedVictims(snap, &g)...)
		}
	}
	return list
}

// bindGroups returns groups with placements that refer to the stored job, and those of
// instances that are moved to their own jobs.
func bindGroups(groups []model.CommitGroup, job *model.Job, snap *state.Snapshot) []model.CommitGroup {
	bind := func(list []*model.Allocation) []*model.Allocation {
		out := make([]*model.Allocation, len(list))
		for i, a := range list {
			bound := *a
			owner := job
			if a.Job.Key() != job.Key() {
				if owner = codec.FindVersion(&snap.View, a.Job); owner == nil {
					owner = a.Job // verification finds that it has changed
				}
			}
			bound.Job = owner
			if g := owner.Group(a.Group.Name); g != nil {
				bound.Group = g
			}
			out[i] = &bound
		}
		return out
	}
	out := make([]model.CommitGroup, len(groups))
	for i, g := range groups {
		g.Placements, g.Updates = bind(g.Placements), bind(g.Updates)
		out[i] = g
	}
	return out
}

// unsuitableNode returns the first node that may no longer take a placement of a group by its
// own properties, with the reason, or "". Placements refer to the state. The applier does not
// check taints, constraints, datacenters and drivers: the plans of workers are new, whereas one
// in a token is up to planTTL old.
func unsuitableNode(snap *state.Snapshot, g *model.CommitGroup) string {
	for _, a := range g.Placements {
		pos, ok := snap.Position(a.NodeID)
		if !ok {
			continue // verification finds that it is gone
		}
		checker := feasible.NewNodeChecker(a.Group, snap.ClassCount())
		checker.ToStay = a.MovedFrom != ""
		chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
		if !checker.Feasible(chunk, i) {
			why, _ := checker.Reason(chunk, i)
			return fmt.Sprintf("node %s is no longer suitable: %s", a.NodeID, why)
		}
	}
	return ""
}

// endedVictims returns a reason for each victim that no longer runs, which the proposal
// showed as running.
func endedVictims(snap *state.Snapshot, g *model.CommitGroup) []string {
	var list []string
	for _, e := range g.Evictions {
		if a := snap.Alloc(e.AllocID); a == nil || !a.Live() {
			list = append(list, fmt.Sprintf("its victim, allocation %s, is no longer running", e.AllocID))
		}
	}
	return list
}
