package apply

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A Batch is the content of one log entry: the accepted groups of one or more plans.
// Its content was verified on the leader; Apply repeats only the checks that may have
// another outcome by now.
type Batch struct {
	Now   int64 // Unix nanoseconds at which the placements are made
	Plans []BatchPlan

	// Ineligible lists the nodes that keep rejecting plans, ascending.
	Ineligible []string
}

// A BatchPlan is the accepted part of a plan.
type BatchPlan struct {
	Plan   *model.Plan
	Groups []int // positions in Plan.Groups, ascending
}

// A DroppedGroup identifies a commit group that no longer held when its entry was
// applied.
type DroppedGroup struct{ Plan, Group int }

// Apply writes the batch. Every server does so with the same entry, so the result
// depends on the transaction alone. It returns the follow-up evaluations and the
// groups that were dropped: because a node they need became ineligible or an instance that they
// replace completed after verification, or because their job has a PreemptionHold by now.
//
// Another group may rely on capacity that a dropped one was to free. It was not
// verified for that case, so it is dropped as well.
func (b *Batch) Apply(txn *state.Txn) ([]*model.Evaluation, []DroppedGroup) {
	var evals []*model.Evaluation
	var dropped []DroppedGroup
	unfreed := unfreedNodes{}
	for p := range b.Plans {
		bp := &b.Plans[p]
		groups := remainingGroups(&txn.View, bp, unfreed)
		if len(groups) < len(bp.Groups) {
			for _, i := range bp.Groups {
				if !slices.Contains(groups, i) {
					dropped = append(dropped, DroppedGroup{p, i})
				}
			}
			txn.JobWriter().MarkDirty(bp.Plan.Job)
		}
		evals = append(evals, Plan(txn, b.Now, bp.Plan, groups)...)
	}
	if len(b.Ineligible) > 0 {
		yes := true
		evals = append(evals, NodeStatus(txn, b.Now, b.Ineligible, NodeChange{Ineligible: &yes})...)
	}
	return evals, dropped
}

// remainingGroups returns the groups of a plan that still hold. Groups of one plan may
// rely on later ones, so a drop repeats the check for all that remain. The loop ends
// after at most as many rounds as there are groups, since each round drops one or is
// the last.
func remainingGroups(v *state.View, bp *BatchPlan, unfreed unfreedNodes) []int {
	groups := slices.Clone(bp.Groups)
	// If the job was run by a confirmed plan after this one's snapshot, the user
	// approved other victims than these.
	held := v.PreemptionHold(bp.Plan.Job).Index > bp.Plan.SnapshotIndex
	done := completedInstances(v, bp)
	for {
		before := len(groups)
		groups = slices.DeleteFunc(groups, func(i int) bool {
			g := &bp.Plan.Groups[i]
			if targetsEligible(v, g) && !done.placedBy(g) && (!held || len(g.Evictions) == 0) && (len(unfreed) == 0 || !unfreed.neededBy(g)) {
				return false
			}
			unfreed.add(v, g)
			return true
		})
		if len(groups) == before || len(unfreed) == 0 {
			return groups
		}
	}
}

// instances is a set of instances of a job.
type instances map[instanceKey]struct{}

type instanceKey struct {
	group  string
	index  int
	nodeID string // of a job that runs on every node; it has no indexes
}

func keyOfInstance(a *model.Allocation) instanceKey {
	if a.Job.Type.PerNode() {
		return instanceKey{group: a.Group.Name, nodeID: a.NodeID}
	}
	return instanceKey{group: a.Group.Name, index: a.Index}
}

// completedInstances returns the instances that a plan stops and that have completed, which
// therefore must not run again.
func completedInstances(v *state.View, bp *BatchPlan) (done instances) {
	job := v.Job(bp.Plan.Job)
	if v.Meta().Version < RerunFrom {
		return nil
	}
	for _, i := range bp.Groups {
		for _, s := range bp.Plan.Groups[i].Stops {
			if a := v.Alloc(s.AllocID); a != nil && a.IsDone(job) {
				if done == nil {
					done = instances{}
				}
				done[keyOfInstance(a)] = struct{}{}
			}
		}
	}
	return done
}

// placedBy reports whether a group places one of the instances.
func (s instances) placedBy(g *model.CommitGroup) bool {
	return len(s) > 0 && slices.ContainsFunc(g.Placements, func(a *model.Allocation) bool {
		if a.Group == nil { // its version of the job no longer exists
			return false
		}
		_, ok := s[keyOfInstance(a)]
		return ok
	})
}

// claimLocation returns the node or cluster location on which a claim reserves
// capacity.
func claimLocation(c *model.Claim) string {
	if c.ClusterID != "" {
		return model.ClusterLocation(c.ClusterID)
	}
	return c.NodeID
}

// unfreedNodes is the set of nodes and clusters on which a dropped group was to
// free capacity.
type unfreedNodes map[string]struct{}

// add adds the nodes and clusters of a dropped group, also those of allocations that
// ended meanwhile: more groups than necessary may be dropped, and never too few.
func (s unfreedNodes) add(v *state.View, g *model.CommitGroup) {
	free := func(allocID string) {
		if a := v.Alloc(allocID); a != nil {
			s[a.NodeID] = struct{}{}
		}
	}
	for i := range g.Stops {
		free(g.Stops[i].AllocID)
	}
	for i := range g.Evictions {
		free(g.Evictions[i].AllocID)
	}
	for _, a := range g.Updates {
		free(a.ID)
	}
	for i := range g.Withdrawals {
		if a := v.Assignment(g.Withdrawals[i].AssignmentID); a != nil {
			s[model.ClusterLocation(a.ClusterID)] = struct{}{}
		}
	}
}

// neededBy reports whether the group needs capacity on such a node or cluster.
func (s unfreedNodes) neededBy(g *model.CommitGroup) bool {
	for _, list := range [2][]*model.Allocation{g.Placements, g.Updates} {
		for _, a := range list {
			if _, ok := s[a.NodeID]; ok {
				return true
			}
		}
	}
	for _, c := range g.Claims {
		if _, ok := s[claimLocation(c)]; ok {
			return true
		}
	}
	for _, a := range g.Assignments {
		if _, ok := s[model.ClusterLocation(a.ClusterID)]; ok {
			return true
		}
	}
	return false
}
