// Package planner serializes plans. Many schedulers propose plans against snapshots
// of their own. One applier on the leader checks each commit group of a plan
// against the newest state, including the plans in flight, and commits the groups
// that still hold. A group that does not hold is returned with the reason and the
// index to plan against next.
//
// If a divisible group holds in part, the placements that hold are committed, each
// with its evictions (partial_commit.go).
//
// The plan of a binding has one commit group, which is checked separately
// (binding_check.go): a stopping assignment holds its capacity until it has ended,
// so an assignment requires capacity that is free and a claim capacity that will
// become free.
//
// The planner makes no decisions: it places nothing, selects no victims, and
// repairs no plan beyond leaving out removals of allocations that have ended. It
// does not write the state: a Committer does (Raft in the server, the state itself
// in the simulator). It reads no clock but the one it is given.
//
// Workers call Queue.Submit, the leader runs Applier.Run, and the simulator calls
// Applier.ApplyOne: the same verification and commit, without goroutines.
//
// Queue is safe for concurrent use. Run, Step and ApplyOne own the applier's
// scratch and must be called by one goroutine at a time. Stats may be called
// concurrently.
//
// DESIGN.md describes the pipeline, the invariants and the cost of each path.
package planner
