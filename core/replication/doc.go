// Package replication owns the vocabulary of the replicated log: entries and
// their commands, the results of applying them, the errors of proposing them, and
// the versions of the log that a release understands.
//
// The packages below it do the work: codec encodes entries, fsm applies them to
// the state, snapshot writes and reads whole states, raftnode runs one server's
// part in the log, and raftshim remedies defects of the Raft library.
//
// Each kind of command has a row in a Table of every package that handles
// commands. NewTable panics if a row is missing.
//
// The package contains data only. An Entry and the fields of an Applied are read-only
// once they are proposed or observed.
package replication
