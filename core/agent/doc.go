// Package agent implements the node side of a cluster. An agent registers its node,
// renews the node's lease, starts the allocations that servers assign to it, stops
// those that are no longer assigned, and reports their status. If an allocation has
// victims on the node, it starts after the last of them has ended.
//
// Servers decide where allocations run, with one exception: if memory runs out, the
// agent evicts an allocation itself and reports it, and the servers place it again.
// All communication goes through Servers, which sdk/client implements over HTTP.
//
// cmd/internal/app calls it. Agent.Run must be called once; Handler, Stats and NodeID
// are safe for concurrent use. The goroutine of an allocation calls its driver;
// drivers must be safe for concurrent use.
package agent
