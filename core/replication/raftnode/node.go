package raftnode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/replication/raftshim"
)

// A Node is this server's part in the log. Its methods are safe for concurrent use.
type Node struct {
	cfg   Config
	fsm   *fsm.FSM
	shim  *raftshim.Raft
	stop  chan struct{} // closed by Close
	once  sync.Once
	tasks sync.WaitGroup
}

// Open starts a node. It returns once the newest snapshot is in the store; the
// entries of the log follow. It returns a *replication.FormatError if this release
// does not support the cluster's version.
func Open(cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, fsm: cfg.fsm(), stop: make(chan struct{})}
	var err error
	n.shim, err = raftshim.Start(raftshim.Config{
		Raft: cfg.raft(), FSM: n.fsm, Log: cfg.Log, Stable: cfg.Stable, Snapshots: cfg.Snapshots, Transport: cfg.Transport,
		Logger: cfg.logger(),
	})
	if err != nil {
		return nil, err
	}
	n.tasks.Go(n.shutdownOnHalt)
	if err := cfg.Versions.OrOurs().CheckOldest(cfg.Store.Snapshot().Meta().Version); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// shutdownOnHalt shuts Raft down when this server cannot apply the log.
func (n *Node) shutdownOnHalt() {
	select {
	case <-n.fsm.Halted():
		n.Raft().Shutdown()
	case <-n.stop:
	}
}

// Done returns a channel that is closed when this server stops because it cannot
// apply the log. Err returns the reason. The server must be upgraded or repaired,
// and restarted.
func (n *Node) Done() <-chan struct{} { return n.fsm.Halted() }

// Err returns the reason why this server stopped applying the log, or nil.
func (n *Node) Err() error { return n.fsm.Err() }

// Close stops the node and waits for its goroutines. The stores remain open; a
// transport that can be closed is closed.
func (n *Node) Close() error {
	var err error
	n.once.Do(func() {
		err = n.shim.Close()
		close(n.stop)
		n.tasks.Wait()
	})
	return err
}

// Bootstrap starts a cluster of these servers. Each of them may call it with the
// same list. It has no effect on a server with a log that is not empty.
func (n *Node) Bootstrap(servers ...raft.Server) error {
	err := n.Raft().BootstrapCluster(raft.Configuration{Servers: servers}).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return nil
	}
	return err
}

// Apply writes an entry to the logs of a majority and applies it here. A command
// that is too large for one entry becomes several if it can be split; the result
// is that of all.
//
// If nothing was written, it returns replication.ErrNotLeader (a *LeaderError),
// ErrBusy, ErrTooLarge, ErrClosed, or the error of a context that was done before the
// call. If the outcome is unknown, it returns ErrUnknownOutcome. A refusal is not an error:
// it is in the result. The caller must not change the entry until Apply returns. Parts
// are written one after the other, so a batch of several parts costs as many writes.
func (n *Node) Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	snap := n.cfg.Store.Snapshot()
	parts, err := codec.Split(e, snap)
	if err != nil {
		return nil, err
	}
	if refusal := codec.FitVersion(parts, snap.Meta().Version); refusal != nil {
		return &replication.Result{Index: snap.Index(), Err: refusal}, nil //nolint:nilerr // a refusal is a result
	}
	whole := &replication.Result{} // the results of parts are shared with observers
	for i := range parts {
		p := &parts[i]
		result, err := n.propose(ctx, p.Data)
		switch {
		case err != nil && i > 0:
			return nil, fmt.Errorf("%w: %d of %d parts were written: %w", replication.ErrUnknownOutcome, i, len(parts), err)
		case err != nil:
			return nil, err
		}
		if len(parts) == 1 {
			return result, nil
		}
		p.Join(whole, result)
	}
	return whole, nil
}

// propose writes one encoded entry. It returns the error of the context only before the
// entry was handed to Raft; later, the outcome is unknown.
func (n *Node) propose(ctx context.Context, data []byte) (*replication.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n.isShutdown() {
		return nil, n.closedError()
	}
	var future raft.ApplyFuture
	err := n.shim.Do(ctx, func() raft.Future {
		future = n.Raft().Apply(data, n.cfg.Timing.withDefaults().Apply)
		return future
	})
	if err != nil {
		return nil, n.writeError(err)
	}
	switch response := future.Response().(type) {
	case *replication.Result:
		return response, nil
	case error:
		return nil, fmt.Errorf("%w: %w", replication.ErrUnknownOutcome, response)
	default:
		return nil, fmt.Errorf("%w: response %T", replication.ErrUnknownOutcome, response)
	}
}

func (n *Node) isShutdown() bool { return n.Raft().State() == raft.Shutdown }

// closedError returns ErrClosed, with the reason unless it is Close. It distinguishes a
// server that halted, which needs attention, from one that was stopped.
func (n *Node) closedError() error {
	if halted := n.Err(); halted != nil {
		return fmt.Errorf("%w: %w", replication.ErrClosed, halted)
	}
	return replication.ErrClosed
}

// writeError translates Raft's error for an entry. Unless Raft rejected the entry,
// its outcome is unknown.
func (n *Node) writeError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader):
		return n.notLeader()
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return replication.ErrBusy
	case errors.Is(err, raft.ErrRaftShutdown):
		err = n.closedError()
	}
	return fmt.Errorf("%w: %w", replication.ErrUnknownOutcome, err)
}

// readError translates Raft's error for a call that writes nothing. The call may be
// repeated without harm.
func (n *Node) readError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return n.notLeader()
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return replication.ErrBusy
	case errors.Is(err, raft.ErrRaftShutdown):
		return n.closedError()
	}
	return err
}

// notLeader returns an error that names the current leader, if there is one.
func (n *Node) notLeader() error {
	id, addr := n.Leader()
	if id == n.cfg.ServerID {
		id, addr = "", "" // it was the leader a moment ago
	}
	return &replication.LeaderError{ID: id, Addr: addr}
}

// Leadership returns a channel that receives true when this server becomes the
// leader, and false when it stops being the leader, in turn. It has one reader,
// which receives the loss of every leadership that it received. Close closes the
// channel.
func (n *Node) Leadership() <-chan bool { return n.shim.Leadership() }

// IsLeader reports whether this server regards itself as the leader.
// VerifyLeader is certain.
func (n *Node) IsLeader() bool { return n.Raft().State() == raft.Leader }

// Leader returns the leader, or "" if none is known.
func (n *Node) Leader() (id, addr string) {
	a, i := n.Raft().LeaderWithID()
	return string(i), string(a)
}

// Term returns the current term.
func (n *Node) Term() uint64 { return n.Raft().CurrentTerm() }

// Barrier waits until everything that was committed before is in the store of this
// server, which must be the leader. It writes an entry without a command, and so costs
// as much as a write.
func (n *Node) Barrier(ctx context.Context) error {
	if n.isShutdown() {
		return n.closedError()
	}
	return n.readError(n.shim.Do(ctx, func() raft.Future { return n.Raft().Barrier(timeout(ctx)) }))
}

// VerifyLeader confirms with a majority that this server is still the leader. It costs
// one round of heartbeats and no write.
func (n *Node) VerifyLeader(ctx context.Context) error {
	if n.isShutdown() {
		return n.closedError()
	}
	return n.readError(n.shim.Do(ctx, n.Raft().VerifyLeader))
}

// Transfer transfers leadership to the follower with the newest log. It returns an
// error if no follower takes over in time; this server then remains the leader.
func (n *Node) Transfer(ctx context.Context) error {
	return n.readError(n.shim.Do(ctx, n.Raft().LeadershipTransfer))
}

// timeout returns the time that ctx leaves, or 0 if it has no deadline.
func timeout(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), 1) //nolint:forbidigo // a deadline is of the real clock
}

// Raft returns the underlying Raft node, for membership and settings.
func (n *Node) Raft() *raft.Raft { return n.shim.Raft() }
