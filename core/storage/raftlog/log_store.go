package raftlog

import (
	"github.com/hashicorp/raft"
)

// A LogStore is what replication requires of a log. *Log implements it; any other
// implementation must pass the conformance tests of this package.
type LogStore interface {
	raft.LogStore
	raft.StableStore
	raft.CommitTrackingLogStore
	raft.MonotonicLogStore
}
