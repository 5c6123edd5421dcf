package replication

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

func (t Timing) defaults() Timing {
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
	t = t.defaults()
	c := raft.DefaultConfig()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout, c.CommitTimeout = t.Heartbeat, t.Election, t.Lease, t.Commit
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = t.SnapshotInterval, t.SnapshotThreshold, t.TrailingLogs
	// Entries that wait while others are written go out together, as whoever
	// proposes one waits at the channel. BatchApplyCh would put a buffer there,
	// and what is in it when Raft shuts down is never answered.
	c.MaxAppendEntries, c.BatchApplyCh = maxAppend, false
	c.ShutdownOnRemove = true
	c.NoLegacyTelemetry = true
	return c
}

// NewTransport carries Raft over streams. There is no pipelining: with it a
// follower that refuses entries once may never be sent any again, while its
// heartbeats look fine, and it gains nothing that can be measured. addresses
// tells where a server is now; nil: where the configuration of the cluster says.
func NewTransport(streams raft.StreamLayer, addresses raft.ServerAddressProvider, log *slog.Logger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: addresses, Logger: raftLogger(log), Stream: streams,
		MaxPool: 3, MaxRPCsInFlight: 1, Timeout: 10 * time.Second,
	})
}

// mostReplayed is how many entries are applied at once when a server starts.
// Raft queues all of them before anything takes them from the queue, which
// holds 128 batches: with more, the start would hang for ever. What is left out
// is applied as soon as a leader is heard.
const mostReplayed = 100 * maxAppend

// trackCommits has a server that starts apply at once what it knows to be
// committed, if its log keeps track of that: else it would answer readers from
// its last snapshot until it hears a leader.
//
// Raft 1.8.0 does not look at membership in what it replays so, and a server
// would forget who belongs to the cluster. So the replay ends before the first
// entry of that kind; from there on Raft reads the log as it always did.
func trackCommits(logs raft.LogStore, snapshots raft.SnapshotStore, c *raft.Config) (raft.LogStore, error) {
	tracking, ok := logs.(raft.CommitTrackingLogStore)
	if !ok {
		return logs, nil
	}
	metas, err := snapshots.List()
	if err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	from := uint64(0)
	if len(metas) > 0 {
		from = metas[0].Index
		if err := replaced(tracking, metas[0]); err != nil {
			return nil, err
		}
	}
	committed, err := tracking.GetCommitIndex()
	if err != nil {
		return nil, fmt.Errorf("commit index of the log: %w", err)
	}
	last, err := tracking.LastIndex()
	if err != nil {
		return nil, fmt.Errorf("end of the log: %w", err)
	}
	most, err := beforeMembership(tracking, from, min(committed, last, from+mostReplayed))
	if err != nil {
		return nil, err
	}
	c.RestoreCommittedLogs = true
	return &boundedCommits{CommitTrackingLogStore: tracking, snapshots: snapshots, most: most}, nil
}

// beforeMembership is the index up to which no entry changes who belongs to the
// cluster.
func beforeMembership(logs raft.LogStore, from, to uint64) (uint64, error) {
	for index := from + 1; index <= to; index++ {
		var l raft.Log
		if err := logs.GetLog(index, &l); err != nil {
			return 0, fmt.Errorf("log entry %d: %w", index, err)
		}
		if l.Type != raft.LogCommand && l.Type != raft.LogNoop && l.Type != raft.LogBarrier {
			return index - 1, nil
		}
	}
	return to, nil
}
