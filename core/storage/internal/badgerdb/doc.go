// Package badgerdb owns how this project opens and uses Badger: its options, checks
// of tables before Badger sees them, conversion of its panics to errors, and the
// checksum that every stored value carries.
//
// It does not depend on the keys of a directory. The Raft log and the key-value store
// use it. Its functions are safe for concurrent use.
package badgerdb
