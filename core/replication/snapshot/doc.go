// Package snapshot owns the stream that holds a whole state: Raft's snapshots, an
// operator's backups, and the bytes that Hash compares states by.
//
// A stream is eight bytes of magic and format, records with a length and a
// CRC-32C each, a record with their number, and the SHA-256 of everything before.
// A damaged or truncated stream is therefore never mistaken for a smaller state.
// Records are in a fixed order, and maps in key order: equal states have equal
// streams.
//
// It decides nothing about when a snapshot is taken, and where it is stored.
package snapshot
