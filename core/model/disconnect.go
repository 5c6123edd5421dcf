package model

import "math"

// Disconnect configures how a group's instances are treated while their node is
// disconnected: its heartbeats stopped, and it may still run them.
type Disconnect struct {
	LostAfter int64 // nanoseconds after the node was declared down at which they are lost; 0 retains them until it reconnects
	Replace   bool  // replacements are placed meanwhile
}

// LostAt returns when an allocation of the group on a node that is down is lost, in
// Unix nanoseconds, or MaxInt64 if time alone does not lose it. It returns false if
// the allocation is lost at once. Allocations on a draining node are, since nothing
// is to return there.
func (g *Group) LostAt(n *Node) (at int64, kept bool) {
	d := g.Disconnect
	switch {
	case d == nil || n.Status != NodeDown || n.Drain:
		return 0, false
	case d.LostAfter == 0 || d.LostAfter > math.MaxInt64-n.DownSince:
		return math.MaxInt64, true
	}
	return n.DownSince + d.LostAfter, true
}

// ReplacesOnDisconnect reports whether replacements run while the node of an
// instance is disconnected. Per-node jobs have no replacements.
func (g *Group) ReplacesOnDisconnect() bool {
	return g.Disconnect != nil && g.Disconnect.Replace && !g.Job.Type.PerNode()
}

// Unknown reports whether the status of the allocation is unknown: its node is
// disconnected, and the allocation is retained.
func (a *Allocation) Unknown(n *Node) bool {
	return !a.Client.Terminal() && a.Group.Disconnect != nil && n != nil && n.Status == NodeDown
}

// LostWith reports whether the allocation, which is live, is lost with its node at a time
// in Unix nanoseconds, although no evaluation of its job has written that yet. n is nil if
// the node was removed. Nothing is gained by its eviction, so it is never a victim.
func (a *Allocation) LostWith(n *Node, now int64) bool {
	switch {
	case n == nil:
		return true
	case n.Status != NodeDown:
		return false
	}
	at, kept := a.Group.LostAt(n)
	return !kept || at <= now
}

// ClientUnknown is the displayed status of an Unknown allocation. It is never
// stored.
const ClientUnknown = "unknown"

// ClientStatusText returns the displayed client status of an allocation on a node.
func ClientStatusText(a *Allocation, n *Node) string {
	if a.Unknown(n) {
		return ClientUnknown
	}
	return a.Client.String()
}
