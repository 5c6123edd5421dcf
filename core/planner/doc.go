// Package planner serialises plans. Many schedulers propose against snapshots
// of their own; one applier on the leader checks each commit group of a plan
// against the newest state, as it will be once the plans in flight are in, and
// commits what still holds. What no longer holds goes back with the reason and
// the index to plan on next.
//
// A group that says that it is divisible is committed in part where only a part of
// its placements holds (divide.go), a placement with its evictions at a time.
//
// Plans of bindings have one commit group, which is checked by itself
// (bindings.go): whatever was told to stop holds its room on a member cluster
// until it is gone, so an assignment needs room that is free and a claim room that
// will be.
//
// It never chooses: it places nothing, picks no victims, and repairs no plan
// beyond leaving out evictions and stops of what has ended already. It never
// writes: a Committer does (Raft in the server, the state itself in the
// simulator). It reads no clock but the one it is given.
//
// Workers call Queue.Submit, the leader runs Applier.Run, the simulator calls
// Applier.ApplyOne: the same verification and the same commit, without
// goroutines.
//
// Queue is safe for concurrent use. Run, Step and ApplyOne own the applier's
// scratch and must be called by one goroutine at a time; Stats may be called
// by anyone.
package planner
