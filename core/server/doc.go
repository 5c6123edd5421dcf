// Package server runs one server: it connects the log, the state, the scheduler's workers
// and the parts below it, and runs the tasks of the leader.
//
// It changes the state only through the log, and places nothing itself: core/worker and
// core/scheduler plan, core/planner verifies, core/replication applies. The data that it holds in
// addition to the state (broker, blocked evaluations, heartbeat deadlines) is rebuilt from
// the state when a term of leadership starts, and discarded when it ends.
//
// core/api calls the methods that take a context, the log calls Observe, cmd calls Run.
// Every method of Server is safe for concurrent use. Observe must be called by one
// goroutine, in the order of the log, and never blocks.
//
// DESIGN.md describes the life of a request and of a term, METRICS.md lists the metrics.
package server
