package raftlog

import (
	"github.com/hashicorp/raft"
)

// LogStore is what replication needs of a log. Log is one; whatever else passes
// storagetest.Conformance could take its place.
type LogStore interface {
	raft.LogStore
	raft.StableStore
	raft.CommitTrackingLogStore
	raft.MonotonicLogStore
}
