package raftnode

import (
	"cmp"
	"time"

	"github.com/hashicorp/raft"
)

// maxAppend is the number of entries that are sent to a follower, or applied, at
// once.
const maxAppend = 128

// Timing holds Raft's timeouts, and the limits of the log's length. A zero field
// means the default.
type Timing struct {
	Heartbeat time.Duration // without contact to the leader before an election; default: 500ms
	Election  time.Duration // maximum duration of an election; default: Heartbeat
	Lease     time.Duration // without contact to a majority before a leader steps down; default: Heartbeat / 2
	Commit    time.Duration // between an idle leader's messages about commits; default: 20ms
	Apply     time.Duration // maximum wait of an entry in Raft's queue; default: 10s

	SnapshotInterval  time.Duration // between checks of SnapshotThreshold; default: 2m
	SnapshotThreshold uint64        // entries since the last snapshot that cause another; default: 8192
	TrailingLogs      uint64        // entries that remain in the log behind a snapshot; default: 10240
}

func (t Timing) withDefaults() Timing {
	t.Heartbeat = cmp.Or(t.Heartbeat, 500*time.Millisecond)
	t.Election = cmp.Or(t.Election, t.Heartbeat)
	t.Lease = cmp.Or(t.Lease, t.Heartbeat/2)
	t.Commit = cmp.Or(t.Commit, 20*time.Millisecond)
	t.Apply = cmp.Or(t.Apply, 10*time.Second)
	t.SnapshotInterval = cmp.Or(t.SnapshotInterval, 2*time.Minute)
	t.SnapshotThreshold = cmp.Or(t.SnapshotThreshold, 8192)
	t.TrailingLogs = cmp.Or(t.TrailingLogs, 10240)
	return t
}

func (t Timing) raft() *raft.Config {
	t = t.withDefaults()
	c := raft.DefaultConfig()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout, c.CommitTimeout = t.Heartbeat, t.Election, t.Lease, t.Commit
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = t.SnapshotInterval, t.SnapshotThreshold, t.TrailingLogs
	// Without BatchApplyCh, proposers wait at an unbuffered channel, and those that
	// wait while others are written are written together. With it, Raft never
	// answers entries in the channel's buffer when it shuts down.
	c.MaxAppendEntries, c.BatchApplyCh = maxAppend, false
	c.ShutdownOnRemove = true
	c.NoLegacyTelemetry = true
	return c
}
