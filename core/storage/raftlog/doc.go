// Package raftlog owns the Raft log and Raft's stable store (votes and terms), on
// Badger. Whatever StoreLogs, DeleteRange and Set have returned for is on the disk.
//
// It verifies a log before it uses it and refuses one that was damaged or rolled
// back; it never repairs by discarding entries. Replication uses a Log through
// LogStore, WithDeadline reports writes that hang, and StableStore stops a server
// whose votes cannot be written.
//
// A Log is safe for concurrent use. It runs two goroutines until Close.
package raftlog
