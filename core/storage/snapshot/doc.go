// Package snapshot owns the Raft snapshots of a data directory. It wraps Raft's own
// file store and adds errors that name the file and the remedy, and the check that
// a usable snapshot reaches the first entry of the log.
//
// It never interprets the state inside a snapshot. Replication writes and reads
// snapshots; core/storage and doctor list and check them. A Store is as safe for
// concurrent use as Raft's file store.
package snapshot
