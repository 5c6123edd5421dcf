// Package history owns the records of a server's work: decisions and events in
// the order of their Raft indexes, bounded by age and by size.
//
// Nothing is decided by the history, so it is not synced: a power failure may lose the
// most recent records. The server appends records and answers queries from it.
//
// A Store is safe for concurrent use. It runs one goroutine until Close.
package history
