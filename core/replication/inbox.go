package replication

import (
	"time"

	"github.com/hashicorp/raft"
)

// inbox is a transport on which what other servers ask passes by here before Raft gets
// it: votes are judged in the way that elections wants them (judge), and what this
// server has already does not get there (known.go).
type inbox struct {
	raft.Transport
	raft.WithPreVote
	rpcs      chan raft.RPC
	logs      raft.LogStore
	snapshots raft.SnapshotStore
	fsm       *fsm
	raft      *raft.Raft // of run
	quiet     time.Duration
	other     uint64 // the snapshot in whose place a leader had another entry
}

var (
	_ raft.Transport   = (*inbox)(nil)
	_ raft.WithPreVote = (*inbox)(nil)
	_ raft.WithClose   = (*inbox)(nil)
)

// inbox is the inbox on a transport; nil where that carries no pre-votes.
func (t Timing) inbox(trans raft.Transport, logs raft.LogStore, snapshots raft.SnapshotStore, f *fsm) *inbox {
	before, ok := trans.(raft.WithPreVote)
	if !ok {
		return nil
	}
	t = t.defaults()
	return &inbox{
		Transport: trans, WithPreVote: before, rpcs: make(chan raft.RPC), logs: logs, snapshots: snapshots, fsm: f,
		quiet: quiet(t.Heartbeat, t.Lease),
	}
}

// Consumer is where Raft gets what others ask.
func (b *inbox) Consumer() <-chan raft.RPC { return b.rpcs }

// Close ends the transport.
func (b *inbox) Close() error {
	if c, ok := b.Transport.(raft.WithClose); ok {
		return c.Close()
	}
	return nil
}

// run passes on what others ask until stop is closed.
func (b *inbox) run(of *raft.Raft, stop <-chan struct{}) {
	b.raft = of
	in := b.Transport.Consumer()
	for {
		select {
		case rpc := <-in:
			b.handle(rpc, stop)
		case <-stop:
			return
		}
	}
}

func (b *inbox) handle(rpc raft.RPC, stop <-chan struct{}) {
	switch asked := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		if b.contradicts(asked) {
			b.fsm.stop(errContradicted)
			rpc.Respond(&raft.AppendEntriesResponse{}, errContradicted)
			return
		}
		rpc.Command = b.unknown(asked)
	case *raft.InstallSnapshotRequest:
		switch {
		case b.knows(asked):
			go b.passOver(rpc, nil)
		case b.older(asked):
			go b.passOver(rpc, errOlder)
		case b.fsm.writing.begin(stop):
			b.await(rpc, stop)
			b.fsm.writing.end()
		}
		return
	default:
		rpc.Command = b.judge(rpc.Command)
	}
	b.pass(rpc, stop)
}

// pass is whether Raft took it.
func (b *inbox) pass(rpc raft.RPC, stop <-chan struct{}) bool {
	select {
	case b.rpcs <- rpc:
		return true
	case <-stop:
		return false
	}
}

// await passes something on, and waits for the answer: what comes behind it is looked
// at when it is done.
func (b *inbox) await(rpc raft.RPC, stop <-chan struct{}) {
	answer, to := make(chan raft.RPCResponse, 1), rpc.RespChan
	rpc.RespChan = answer
	if !b.pass(rpc, stop) {
		return
	}
	select {
	case r := <-answer:
		to <- r
	case <-stop:
	}
}
