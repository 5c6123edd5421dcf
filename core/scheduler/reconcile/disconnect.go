package reconcile

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
)

// Disconnected clients: when heartbeats of a node stop, its allocations may still
// run. A group's disconnect block states for how long they are kept, and whether
// replacements run meanwhile. A kept allocation counts like any live one and stays
// unchanged until its node returns.

// isKept reports whether an allocation is kept because its node may return. If
// that ends at some time, the job is reconciled again then.
func (r *Reconciler) isKept(g *model.Group, a *model.Allocation, node *model.Node) bool {
	at, kept := r.keptUntil(g, a, node)
	if kept && at != math.MaxInt64 {
		r.recheckBy(at)
	}
	return kept
}

// keptUntil returns when an allocation on a disconnected node is lost, or false if
// it is not kept now. A NoExecute taint may make that earlier.
func (r *Reconciler) keptUntil(g *model.Group, a *model.Allocation, node *model.Node) (at int64, kept bool) {
	if node == nil {
		return 0, false
	}
	if at, kept = g.LostAt(node); !kept {
		return 0, false
	}
	if expelled, taint := g.NoExecuteAt(node, a.CreateTime); taint != nil {
		at = min(at, expelled)
	}
	return at, at > r.now
}

// isDisconnected reports whether a replacement runs for an allocation until its
// node returns.
func (r *Reconciler) isDisconnected(g *model.Group, a *model.Allocation) bool {
	return r.nodesChanged && g.ReplacesOnDisconnect() && r.isKept(g, a, r.snap.Node(a.NodeID))
}

// isLost reports whether an allocation's node was removed, or is down for longer
// than the allocation is kept.
func (r *Reconciler) isLost(g *model.Group, a *model.Allocation) bool {
	node := r.snap.Node(a.NodeID)
	if node != nil && node.Status != model.NodeDown {
		return false
	}
	_, kept := r.keptUntil(g, a, node)
	return !kept
}

// replacementFor returns the instance that replaces a disconnected allocation until
// its node returns.
func (r *Reconciler) replacementFor(disconnected, last *model.Allocation) Missing {
	m := r.heir(disconnected, last)
	m.Since = max(r.snap.Node(disconnected.NodeID).DownSince, r.job.SubmitTime)
	return m
}
