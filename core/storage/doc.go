// Package storage owns a server's data directory: the Raft log and the votes, the
// snapshots, the policy modules, and the history of decisions. It defines when each
// of them is durable, and how an operator recovers from each kind of damage.
//
// It never interprets the bytes that it stores, makes no decisions, and never
// repairs by discarding: Open refuses a directory whose contents differ from what
// was written, and the error contains the remedy.
//
// The server opens a directory with Open and closes it. The parts are packages of
// their own:
//
//	datadir    layout of the directory, its lock, and the errors of all parts
//	raftlog    Raft log and stable store
//	snapshot   Raft snapshots
//	blob       policy modules, by digest
//	history    decisions and events, bounded by age and size
//	doctor     offline checks of a stopped server's directory
//
// Everything is safe for concurrent use. A Store runs a few goroutines (deleting
// old entries, trimming the history, syncing the rollback guard) until Close;
// Badger runs more.
//
// DESIGN.md describes the layout, the durability of each write, and the remedies.
package storage
