// Package storage owns a server's data directory: the Raft log and votes, the
// snapshots, the policy modules, and the history of decisions. It says what is
// durable when, and what is to be done about each kind of damage.
//
// It never looks into what it keeps, decides nothing, and never repairs by
// forgetting: a directory that is not as it was written is refused, with the
// way back in the error.
//
// The server opens a directory with Open and closes it; replication is given
// the Log and the Snapshots; cede operator doctor calls Doctor on a directory
// that no server uses.
//
// Everything is safe for concurrent use. A Store and a Log run a few goroutines
// of their own (deleting, trimming, writing the side file down) until Close;
// Badger runs more.
//
// DESIGN.md tells the layout, what is durable when, and the ways back.
package storage
