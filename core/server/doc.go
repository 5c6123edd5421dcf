// Package server owns what a server does beside replicating: it answers the
// API's calls with entries of the log, and while it leads it queues evaluations,
// applies plans, watches nodes' heartbeats, and clears away what is over.
//
// It never changes the state but through the log, never places anything itself,
// and never reads a policy's answer: core/worker and core/scheduler plan,
// core/planner verifies, core/replication applies. What it keeps beside the
// state (broker, blocked evaluations, heartbeat deadlines) is made from the
// state whenever a term of leadership begins, and thrown away when it ends.
//
// core/api calls the methods that take a context, the log calls Observe, cmd
// runs it. Every method of Server is safe for concurrent use; Observe is called
// by one goroutine, in the order of the log, and never blocks.
//
// DESIGN.md tells the life of a request and of a term, METRICS.md what is
// measured.
package server
