// Package storagetest owns the conformance tests of log stores, over Raft's own interfaces:
// Raft's in-memory store passes them, and so does raftlog. It also holds fixtures for tests
// of the storage packages, and functions that damage a data directory.
//
// It is only used by tests. Each conformance check opens a store of its own.
package storagetest
