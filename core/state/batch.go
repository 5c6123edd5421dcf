package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Batch is what one entry of the log writes: what holds of one or more plans.
type Batch struct {
	Now   int64 // Unix nanoseconds: when the placements are made
	Plans []BatchPlan

	// Ineligible names the nodes that keep rejecting plans, ascending.
	Ineligible []string
}

// BatchPlan is the part of a plan that holds.
type BatchPlan struct {
	Plan   *model.Plan
	Groups []int // positions in Plan.Groups, ascending
}

// DroppedGroup is a commit group that no longer held when its entry was applied.
type DroppedGroup struct{ Plan, Group int }

// Apply writes the batch. It is what every server does with the entry, so it
// depends on nothing but the transaction. It returns the evaluations that
// follow, and the groups that were dropped because a node they want room on
// went away between verification and this entry, or because their job evicts nobody
// by then (Held).
//
// Another group may stand on room that a dropped one was to free. Nothing was
// verified for that case, so it is dropped as well.
func (b *Batch) Apply(txn *Txn) ([]*model.Evaluation, []DroppedGroup) {
	var evals []*model.Evaluation
	var dropped []DroppedGroup
	spoilt := spoiltNodes{}
	for p := range b.Plans {
		bp := &b.Plans[p]
		groups := stillHolding(txn, bp, spoilt)
		if len(groups) < len(bp.Groups) {
			for _, i := range bp.Groups {
				if !slices.Contains(groups, i) {
					dropped = append(dropped, DroppedGroup{p, i})
				}
			}
			txn.MarkDirty(bp.Plan.Job)
		}
		evals = append(evals, txn.ApplyPlan(b.Now, bp.Plan, groups)...)
	}
	if len(b.Ineligible) > 0 {
		yes := true
		evals = append(evals, txn.ApplyNodeStatus(b.Now, b.Ineligible, NodeChange{Ineligible: &yes})...)
	}
	return evals, dropped
}

// stillHolding is the groups of a plan that still hold. Groups of one plan may lean
// on later ones, so a drop asks again about all that are left.
func stillHolding(txn *Txn, bp *BatchPlan, spoilt spoiltNodes) []int {
	groups := slices.Clone(bp.Groups)
	// Made before somebody ran the job by a plan that shows other victims than these.
	unseen := txn.PreemptionHold(bp.Plan.Job).Index > bp.Plan.SnapshotIndex
	for {
		before := len(groups)
		groups = slices.DeleteFunc(groups, func(i int) bool {
			g := &bp.Plan.Groups[i]
			if takesWork(txn, g) && (!unseen || len(g.Evictions) == 0) && (len(spoilt) == 0 || !spoilt.touches(g)) {
				return false
			}
			spoilt.add(txn, g)
			return true
		})
		if len(groups) == before || len(spoilt) == 0 {
			return groups
		}
	}
}

// takesWork is whether every node takes work on which the group wants room. A
// placement without a group is of a version of its job that is no longer known.
func takesWork(txn *Txn, g *model.CommitGroup) bool {
	for _, a := range g.Placements {
		if n := txn.Node(a.NodeID); n == nil || !n.IsEligible() || a.Group == nil {
			return false
		}
	}
	for _, a := range g.Updates {
		if a.Group == nil {
			return false
		}
	}
	for _, c := range g.Claims {
		if c.ClusterID != "" {
			continue
		}
		if n := txn.Node(c.NodeID); n == nil || !n.IsEligible() {
			return false
		}
	}
	return txn.clustersTakeWork(g)
}

// place is where a claim reserves room.
func place(c *model.Claim) string {
	if c.ClusterID != "" {
		return model.ClusterLocation(c.ClusterID)
	}
	return c.NodeID
}

// spoiltNodes is the nodes and the clusters on which a dropped group was to free room.
type spoiltNodes map[string]struct{}

func (s spoiltNodes) add(txn *Txn, g *model.CommitGroup) {
	free := func(allocID string) {
		if a := txn.Alloc(allocID); a != nil {
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
		if a := txn.Assignment(g.Withdrawals[i].AssignmentID); a != nil {
			s[model.ClusterLocation(a.ClusterID)] = struct{}{}
		}
	}
}

// touches is whether the group wants room on such a node.
func (s spoiltNodes) touches(g *model.CommitGroup) bool {
	for _, list := range [2][]*model.Allocation{g.Placements, g.Updates} {
		for _, a := range list {
			if _, ok := s[a.NodeID]; ok {
				return true
			}
		}
	}
	for _, c := range g.Claims {
		if _, ok := s[place(c)]; ok {
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
