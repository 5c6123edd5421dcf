// Package state owns what the cluster knows: nodes, jobs, allocations,
// evaluations, claims, member clusters, bindings and configuration, as immutable
// snapshots that cost nothing to take, with dense columns of free room for the
// scan over all nodes, and watches that tell who waits that something changed.
// What a node has left follows from its live allocations and is kept in one place
// (usage.go), what a member cluster has left in clusters.go; how log entries
// change the state is in apply*.go.
//
// It never schedules, never reads a clock, never starts a goroutine, and never
// lets the order of a hash table be seen: results are ordered by id, or by the
// order of insertion where they say so.
//
// Workers, the scheduler and the API read snapshots; the applier of the log
// (or the simulator) is the one writer; the planner branches snapshots.
//
// Store is safe for concurrent use. A Snapshot is immutable and may be read by
// any number of goroutines. A Txn belongs to one goroutine; what its reads
// return holds until its next write, what its Snapshot returns holds for ever.
// A value that was handed to a write belongs to the state: change a copy.
package state
