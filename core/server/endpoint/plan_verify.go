package endpoint

import (
	"cmp"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
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
			list = append(list, r.String())
		}
		nodes := newNodeRecheck(after)
		for i := range plan.Groups {
			if why := cmp.Or(nodes.reason(&plan.Groups[i]), changedSource(snap, &plan.Groups[i], plan.SnapshotIndex)); why != "" {
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

// A nodeRecheck checks whether the nodes of a plan are still feasible for its placements. The applier does not check taints, constraints, datacenters and drivers: the
// plans of workers are new, whereas one in a token is up to planTTL old.
type nodeRecheck struct {
	snap *state.Snapshot
	// checkers remember their answers for the classes of nodes, so that a plan for a large
	// cluster checks each class once.
	checkers map[recheckedGroup]*feasible.NodeChecker
}

type recheckedGroup struct {
	group *model.Group
	moved bool // a moved instance may not go where it cannot stay
}

func newNodeRecheck(snap *state.Snapshot) *nodeRecheck {
	return &nodeRecheck{snap, map[recheckedGroup]*feasible.NodeChecker{}}
}

// reason names the first node that has become infeasible for a placement of a commit group, with
// the cause. It returns "" if all nodes are feasible. Placements refer to the state.
func (r *nodeRecheck) reason(g *model.CommitGroup) string {
	for _, a := range g.Placements {
		pos, ok := r.snap.Position(a.NodeID)
		if !ok {
			continue // verification finds that it is gone
		}
		key := recheckedGroup{a.Group, a.MovedFrom != ""}
		checker := r.checkers[key]
		if checker == nil {
			checker = feasible.NewNodeChecker(a.Group, r.snap.ClassCount())
			checker.ToStay = key.moved
			r.checkers[key] = checker
		}
		chunk, i := r.snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
		if !checker.Feasible(chunk, i) {
			why, _ := checker.Reason(chunk, i)
			return fmt.Sprintf("node %s has become infeasible: %s", a.NodeID, why)
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

// changedSource names the first instance that a commit group stops because of its node, which has
// changed since the plan was made: if a drain has ended, the instance may stay. It returns "" if
// there is none. The halves of moves are not replacements.
func changedSource(snap *state.Snapshot, g *model.CommitGroup, planned uint64) string {
	for i := range g.Stops {
		stop := &g.Stops[i]
		a := snap.Alloc(stop.AllocID)
		if stop.MovedTo != "" || a == nil || !a.Live() || !reconcile.IsCausedByNode(stop.Reason) {
			continue
		}
		if n := snap.Node(a.NodeID); n != nil && n.ModifyIndex > planned {
			return fmt.Sprintf("node %s has changed, from which allocation %s was to be replaced", n.ID, a.ID)
		}
	}
	return ""
}
