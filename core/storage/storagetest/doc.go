// Package storagetest owns the promises that every log store keeps, as tests
// over raft's own interfaces: Raft's store in memory passes them, and so does
// ours. Whoever brings another store runs them on it.
//
// Tests call it, and nothing else does. Each check opens stores of its own.
package storagetest
