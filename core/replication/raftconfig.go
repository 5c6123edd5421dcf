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
	c.MaxAppendEntries = maxAppend
	c.BatchApplyCh = true
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

// trackCommits has a server that starts apply at once what it knows to be
// committed, if its log keeps track of that.
func trackCommits(logs raft.LogStore, snapshots raft.SnapshotStore, c *raft.Config) (raft.LogStore, error) {
	tracking, ok := logs.(raft.CommitTrackingLogStore)
	if !ok {
		return logs, nil
	}
	metas, err := snapshots.List()
	if err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	c.RestoreCommittedLogs = true
	from := uint64(0)
	if len(metas) > 0 {
		from = metas[0].Index
	}
	return &boundedCommits{CommitTrackingLogStore: tracking, most: from + mostReplayed}, nil
}

// mostReplayed is how many entries are applied at once when a server starts.
// Raft queues all of them before anything takes them from the queue, which
// holds 128 batches: with more, the start would hang for ever. What is left out
// is applied as soon as a leader is heard.
const mostReplayed = 100 * maxAppend

// boundedCommits is a log that does not admit to more commits than can be
// replayed at the start.
type boundedCommits struct {
	raft.CommitTrackingLogStore
	most uint64
}

// GetCommitIndex implements raft.CommitTrackingLogStore.
func (b *boundedCommits) GetCommitIndex() (uint64, error) {
	index, err := b.CommitTrackingLogStore.GetCommitIndex()
	return min(index, b.most), err
}

// IsMonotonic implements raft.MonotonicLogStore.
func (b *boundedCommits) IsMonotonic() bool {
	m, ok := b.CommitTrackingLogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}
