// Package state holds the cluster state: nodes, jobs, allocations, evaluations,
// claims, member clusters, bindings and configuration. It publishes immutable
// snapshots that cost nothing to take, with dense columns of free capacity for the
// scan over all nodes, and watches that are closed when a table or row changes. The
// free capacity of a node is derived from its live allocations in one file
// (accounting.go), that of a member cluster in clusters.go. Package apply changes
// the state by the entries of the log.
//
// It never schedules, reads a clock or starts a goroutine, and hash order never
// reaches a result: results are ordered by ID, or by insertion if the documentation
// states so.
//
// Workers, the scheduler and the API read snapshots. The applier of the log (or the
// simulator) is the only writer, and the planner branches snapshots.
//
// Store is safe for concurrent use. A Snapshot is immutable and may be read by any
// number of goroutines. A Txn belongs to one goroutine: results of its reads are
// valid until its next write, its Snapshots for ever. A value that was passed to a
// write belongs to the state; to change it, write a copy.
//
// DESIGN.md describes the tables, the invariants and the cost of each path.
package state
