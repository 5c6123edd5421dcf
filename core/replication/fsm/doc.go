// Package fsm applies log entries to the state: the effect of each command, the
// results stored under idempotency keys, and the policy modules that a server
// stores along with its state.
//
// It never lets a clock, a random number or the order of a map decide anything:
// time and IDs come with the entry, so that every server arrives at the same state
// (snapshot.Hash compares them). It does not schedule, and depends on nothing of
// Raft but the interface raft.BatchingFSM.
//
// Raft calls an FSM from one goroutine; Halt, Err and the module functions may be
// called from any. Config.Observe is called on Raft's goroutine, in the order of
// the log, and must not block.
package fsm
