// Package replication owns the log that every server applies: the commands in
// it and how they are written down, what each does to the state, snapshots of
// the state as a stream, and the Raft node that puts one server's log in step
// with the others'.
//
// It never schedules, never answers a user, and never lets a clock, a random
// number or the order of a map into what it applies: time and ids come with the
// entry, so that every server arrives at the same state (Hash tells).
//
// The server proposes entries through a Node and watches what is applied; the
// storage package gives it a log and a place for snapshots and modules.
//
// A Node is safe for concurrent use. Config.Observe is called on the one
// goroutine that applies, in the order of the log, and must not block. What an
// Applied holds is shared and read-only.
package replication
