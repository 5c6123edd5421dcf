package raftshim

import (
	"time"

	"github.com/hashicorp/raft"
)

// A transportFilter is a transport that inspects requests from other servers
// before Raft receives them: it rewrites votes (vote.go), and answers or trims
// requests that this server does not need (stale_rpc.go). Requests are
// inspected one at a time, in order of arrival. Heartbeats are inspected on the
// goroutines of their connections (heartbeat.go).
type transportFilter struct {
	raft.Transport
	raft.WithPreVote
	rpcs      chan raft.RPC
	logs      raft.LogStore
	snapshots raft.SnapshotStore
	lock      snapshotLock
	raft      *raft.Raft     // set by run, before the first request
	heartbeat func(raft.RPC) // Raft's handler of heartbeats
	silence   time.Duration  // see voteAfter
}

var (
	_ raft.Transport   = (*transportFilter)(nil)
	_ raft.WithPreVote = (*transportFilter)(nil)
	_ raft.WithClose   = (*transportFilter)(nil)
)

// newTransportFilter returns a filter, or nil if the transport does not support
// pre-votes.
func newTransportFilter(cfg *Config, logs raft.LogStore, lock snapshotLock) *transportFilter {
	preVote, ok := cfg.Transport.(raft.WithPreVote)
	if !ok {
		return nil
	}
	return &transportFilter{
		Transport: cfg.Transport, WithPreVote: preVote, rpcs: make(chan raft.RPC), logs: logs, snapshots: cfg.Snapshots,
		lock: lock, silence: voteAfter(cfg.Raft.HeartbeatTimeout, cfg.Raft.LeaderLeaseTimeout),
	}
}

// Consumer implements raft.Transport. Raft reads from it what run has inspected.
func (t *transportFilter) Consumer() <-chan raft.RPC { return t.rpcs }

// Close implements raft.WithClose.
func (t *transportFilter) Close() error {
	if c, ok := t.Transport.(raft.WithClose); ok {
		return c.Close()
	}
	return nil
}

// run inspects requests until stop is closed.
func (t *transportFilter) run(r *raft.Raft, stop <-chan struct{}) {
	t.raft = r
	t.Transport.SetHeartbeatHandler(func(rpc raft.RPC) { t.handleHeartbeat(rpc, stop) })
	in := t.Transport.Consumer()
	for {
		select {
		case rpc := <-in:
			t.handle(rpc, stop)
		case <-stop:
			return
		}
	}
}

// handle inspects one request and hands it to Raft, unless it is answered here. A
// snapshot is installed under the lock, because Raft must not write one of its own
// meanwhile.
func (t *transportFilter) handle(rpc raft.RPC, stop <-chan struct{}) {
	switch req := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		rpc.Command = t.trimAppend(req)
	case *raft.InstallSnapshotRequest:
		switch {
		case t.hasSnapshot(req):
			go t.ackStale(rpc, nil)
		case t.isOlder(req):
			go t.ackStale(rpc, errOlderSnapshot)
		case t.lock.lock(stop):
			t.forwardAndWait(rpc, stop)
			t.lock.unlock()
		}
		return
	default:
		rpc.Command = t.rewriteVote(rpc.Command)
	}
	t.forward(rpc, stop)
}

// forward hands a request to Raft. It returns false if stop is closed first.
func (t *transportFilter) forward(rpc raft.RPC, stop <-chan struct{}) bool {
	select {
	case t.rpcs <- rpc:
		return true
	case <-stop:
		return false
	}
}

// forwardAndWait hands a request to Raft and waits for the response, so that the
// next request is inspected against the result.
func (t *transportFilter) forwardAndWait(rpc raft.RPC, stop <-chan struct{}) {
	responses, caller := make(chan raft.RPCResponse, 1), rpc.RespChan
	rpc.RespChan = responses
	if !t.forward(rpc, stop) {
		return
	}
	select {
	case r := <-responses:
		caller <- r
	case <-stop:
	}
}
