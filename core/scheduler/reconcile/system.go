package reconcile

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// Coverage lists the allocations of a system or sysbatch group by node. It belongs to
// one group and one evaluation.
type Coverage struct {
	job  *model.Job
	live map[string]*model.Allocation // by node ID
	last map[string]*model.Allocation // highest incarnation by node ID
	done map[string]bool              // by node ID: it ran to completion there

	indexes map[int]bool // in use
	next    int          // no index below it is free
}

// System sorts the allocations of a group by node and stops those that no longer
// belong on their node. The checker is of the same group.
func (r *Reconciler) System(g *model.Group, checker *feasible.NodeChecker) *Coverage {
	c := &Coverage{
		job:  r.job,
		live: map[string]*model.Allocation{}, last: map[string]*model.Allocation{},
		done: map[string]bool{}, indexes: map[int]bool{},
	}
	for _, a := range r.byGroup[g.Position] {
		c.indexes[a.Index] = true
		if last := c.last[a.NodeID]; last == nil || a.Incarnation > last.Incarnation {
			c.last[a.NodeID] = a
		}
		if a.IsDone(r.job) {
			c.done[a.NodeID] = true
		}
		if a.Live() && !r.stopMisplaced(g, checker, a, c) {
			c.live[a.NodeID] = a
		}
	}
	return c
}

// stopMisplaced stops an allocation that no longer belongs on its node, and reports
// whether it did. The first reason counts. A node that is gone precedes all others,
// since its allocation is lost and not only stopped.
func (r *Reconciler) stopMisplaced(g *model.Group, checker *feasible.NodeChecker, a *model.Allocation, c *Coverage) bool {
	pos, ok := r.snap.Position(a.NodeID)
	var node *model.Node
	if ok {
		node = r.snap.NodeAt(pos)
	}
	feasibleNode := func() bool {
		return checker.Feasible(r.snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize)
	}
	switch {
	case c.live[a.NodeID] == nil && r.isKept(g, a, node):
		return false
	case node == nil || node.Status == model.NodeDown:
		r.plan.Stop(a, reasonNodeDown, true)
	case node.Drains(r.job):
		r.plan.Stop(a, reasonDraining, false)
	case r.expel(g, a, node):
	case c.live[a.NodeID] != nil:
		r.plan.Stop(a, "another allocation of the group is on this node", false)
	case g.Count == 0 || !feasibleNode() && !g.CanRemain(node):
		r.plan.Stop(a, reasonMismatch, false)
	case a.Job.Version != r.job.Version:
		return r.updateOrStop(g, a)
	default:
		return false
	}
	return true
}

// updateOrStop moves an allocation to the newest version of the job in place, or
// stops it so that a new one is placed, and reports whether it was stopped.
func (r *Reconciler) updateOrStop(g *model.Group, a *model.Allocation) (stopped bool) {
	if !a.Group.ContinuesAs(g) {
		r.plan.Stop(a, reasonJobUpdated, false)
		return true
	}
	r.updateInPlace(g, a)
	return false
}

// Covers reports whether a node needs no new instance.
func (c *Coverage) Covers(nodeID string) bool { return c.live[nodeID] != nil || c.done[nodeID] }

// Last returns the allocation with the highest incarnation on a node, or nil.
func (c *Coverage) Last(nodeID string) *model.Allocation { return c.last[nodeID] }

// NewInstance returns a new instance for a node. It has the index of the last
// allocation there, else the lowest free one. It marks the index as used, so that two
// nodes never get the same.
func (c *Coverage) NewInstance(nodeID string) Missing {
	if last := c.last[nodeID]; last != nil {
		return Missing{Index: last.Index, Incarnation: last.Incarnation + 1, SavedWork: last.RetainedWork(c.job, last.EndTime)}
	}
	for c.indexes[c.next] {
		c.next++
	}
	c.next++
	return Missing{Index: c.next - 1}
}
