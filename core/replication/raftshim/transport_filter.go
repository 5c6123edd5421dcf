package raftshim

import (
	"time"

	"github.com/hashicorp/raft"
)

// A transportFilter is a transport that inspects requests from other servers
// before Raft receives them: it rewrites votes (vote.go), and answers or trims
// requests that this server does not need (stale_rpc.go). Requests are
// inspected one at a time, in order of arrival.
type transportFilter struct {
	raft.Transport
	raft.WithPreVote
	rpcs      chan raft.RPC
	logs      raft.LogStore
	snapshots raft.SnapshotStore
	fsm       FSM
	lock      snapshotLock
	raft      *raft.Raft    // set by run, before the first request
	silence   time.Duration // see voteAfter
	// divergedAt is the index of the snapshot for which a leader has shown an
	// entry of another term; 0: none.
	divergedAt uint64
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
		fsm: cfg.FSM, lock: lock, silence: voteAfter(cfg.Raft.HeartbeatTimeout, cfg.Raft.LeaderLeaseTimeout),
	}
}

// Consumer implements raft.Transport.
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

func (t *transportFilter) handle(rpc raft.RPC, stop <-chan struct{}) {
	switch req := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		if t.diverges(req) {
			t.fsm.Halt(ErrDiverged)
			rpc.Respond(&raft.AppendEntriesResponse{}, ErrDiverged)
			return
		}
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
