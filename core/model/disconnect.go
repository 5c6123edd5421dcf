package model

import "math"

// Disconnect says what becomes of a group's instances while their node is silent: it
// was declared down because its heartbeats stopped, and may still run them.
type Disconnect struct {
	LostAfter int64 // nanoseconds since the node was declared down after which they are lost; 0: they are kept until it returns
	Replace   bool  // others run in their places meanwhile
}

// LostAt is when an allocation of the group on a node that is down is lost, Unix ns;
// the greatest number: never, by time. False: it is lost at once. A node that is to be
// emptied has nothing to return for.
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

// ReplacesOnDisconnect is whether others run in the places of instances whose nodes are silent. A
// job that runs on every node has no others.
func (g *Group) ReplacesOnDisconnect() bool {
	return g.Disconnect != nil && g.Disconnect.Replace && !g.Job.Type.PerNode()
}

// Unknown is whether nobody knows what the allocation does: its node is silent, and it
// is kept for it.
func (a *Allocation) Unknown(n *Node) bool {
	return !a.Client.Terminal() && a.Group.Disconnect != nil && n != nil && n.Status == NodeDown
}

// ClientUnknown is what people read of an allocation that is Unknown. It is never stored.
const ClientUnknown = "unknown"

// ClientStatusText is what people read of what an allocation on a node does.
func ClientStatusText(a *Allocation, n *Node) string {
	if a.Unknown(n) {
		return ClientUnknown
	}
	return a.Client.String()
}
