package scheduler

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
)

// Nodes that are silent: their heartbeats stopped, and what they run may go on. Groups
// say how long it is kept for them, and whether others stand in for it meanwhile. What
// is kept stays as it is until the node returns; it counts like all that lives.

// awaits is whether an allocation is kept because its node may return. When that has an
// end, it is looked at again then.
func (r *run) awaits(g *model.Group, a *model.Allocation, node *model.Node) bool {
	at, kept := r.keptUntil(g, a, node)
	if kept && at != math.MaxInt64 {
		r.leavesAt(at)
	}
	return kept
}

// keptUntil is when an allocation on a silent node is lost; false: it is not kept now.
// A taint that has work leave the node has it lost at that time.
func (r *run) keptUntil(g *model.Group, a *model.Allocation, node *model.Node) (at int64, kept bool) {
	if node == nil {
		return 0, false
	}
	if at, kept = g.LostAt(node); !kept {
		return 0, false
	}
	if leaves, taint := g.NoExecuteAt(node, a.CreateTime); taint != nil {
		at = min(at, leaves)
	}
	return at, at > r.now
}

// leavesAt has the job looked at again when an allocation has to leave its node.
func (r *run) leavesAt(at int64) {
	if r.leaves == 0 || at < r.leaves {
		r.leaves = at
	}
}

// isAway is whether others stand in for an allocation until its node returns.
func (r *run) isAway(g *model.Group, a *model.Allocation) bool {
	return r.moving && g.ReplacesOnDisconnect() && r.awaits(g, a, r.base.Node(a.NodeID))
}

// isLost is whether an allocation's node is gone, or down for longer than it is kept.
func (r *run) isLost(g *model.Group, a *model.Allocation) bool {
	node := r.base.Node(a.NodeID)
	if node != nil && node.Status != model.NodeDown {
		return false
	}
	_, kept := r.keptUntil(g, a, node)
	return !kept
}

// standIn runs in the place of an allocation whose node is silent.
func (r *run) standIn(g *model.Group, away, last *model.Allocation) want {
	w := r.heir(g, away, last)
	w.since = max(r.base.Node(away.NodeID).DownSince, r.job.SubmitTime)
	return w
}

func mayAwait(g *model.Group) bool { return g.Disconnect != nil }
