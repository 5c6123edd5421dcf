// Package agent owns the node side of a cluster: it registers its node, keeps the
// node's lease, starts the allocations that servers want here and stops those they
// no longer want, and tells them what became of each. An allocation that displaces
// others starts when the last of them is gone from the node, and not before.
//
// It decides nothing about who runs where, with one exception: when memory runs
// out it evicts by itself, and says so, and the servers place that work anew. It
// never reads another server's memory or state: everything goes through Servers,
// which sdk/client implements over HTTP.
//
// cmd/internal/app calls it. Agent.Run is called once; Handler, Stats and NodeID
// may be called by anybody at any time. Drivers are called by the goroutine of the
// allocation that they run, and must be safe for concurrent use.
package agent
