package raftshim

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// drainTimeout bounds how long Close waits for calls in flight. A leader that
// cannot reach a majority steps down and fails them earlier than that; a leader
// whose disk hangs never answers.
const drainTimeout = 2 * time.Second

// Config holds the arguments of raft.NewRaft.
type Config struct {
	// Raft is modified by Start, which sets NotifyCh and RestoreCommittedLogs.
	Raft      *raft.Config
	FSM       FSM
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	// Transport gets the vote and stale-RPC remedies only if it implements
	// raft.WithPreVote, as every transport of hashicorp/raft does.
	Transport raft.Transport
	Logger    *slog.Logger // required
}

// Raft is a running raft.Raft with every remedy in place. Its methods are safe for
// concurrent use.
type Raft struct {
	raft       *raft.Raft
	leadership chan bool
	down       chan struct{} // closed once Raft has shut down
	stop       chan struct{} // closed by Close
	closeOnce  sync.Once
	closeErr   error
	goroutines sync.WaitGroup
	calls      inflight
}

// Start starts Raft. It returns once the newest snapshot is restored; the entries of
// the log follow. If the FSM refuses the snapshot, the error wraps the FSM's, which
// raft.NewRaft alone would drop. cfg.Raft must not be used for another node.
func Start(cfg Config) (*Raft, error) {
	notify := make(chan bool)
	cfg.Raft.NotifyCh = notify
	r := &Raft{
		leadership: make(chan bool), down: make(chan struct{}), stop: make(chan struct{}),
	}
	logs, err := wrapLogStore(cfg.Log, cfg.Snapshots, cfg.Raft)
	if err != nil {
		return nil, err
	}
	lock := make(snapshotLock, 1)
	fsm := &fsm{FSM: cfg.FSM, lock: lock, log: cfg.Logger}
	transport := cfg.Transport
	filter := newTransportFilter(&cfg, logs, lock)
	if filter != nil {
		transport = filter
	}
	if r.raft, err = raft.NewRaft(cfg.Raft, fsm, logs, cfg.Stable, indexedSnapshots{cfg.Snapshots}, transport); err != nil {
		if fsm.restoreErr != nil {
			err = fmt.Errorf("%w: %w", err, fsm.restoreErr)
		}
		return nil, fmt.Errorf("raft: %w", err)
	}
	if filter != nil {
		r.goroutines.Go(func() { filter.run(r.raft, r.stop) })
		r.goroutines.Go(func() {
			(&elections{raft: r.raft, self: cfg.Raft.LocalID, heartbeat: cfg.Raft.HeartbeatTimeout}).run(r.stop)
		})
	}
	states := make(chan raft.Observation, 1)
	r.raft.RegisterObserver(raft.NewObserver(states, true, func(o *raft.Observation) bool {
		return o.Data == raft.Shutdown
	}))
	r.goroutines.Go(func() { r.watchShutdown(states) })
	r.goroutines.Go(func() { (&leadershipQueue{}).run(notify, r.leadership, r.down, r.stop) })
	return r, nil
}

// watchShutdown closes down when Raft shuts down. Raft leaves some futures
// without an answer then, so that Do must not wait for them.
func (r *Raft) watchShutdown(states <-chan raft.Observation) {
	defer close(r.down)
	select {
	case <-states:
	case <-r.stop:
	}
}

// Raft returns the underlying node, for reads, membership and settings.
func (r *Raft) Raft() *raft.Raft { return r.raft }

// Leadership returns a channel that alternates between true (this server became
// the leader) and false (it stopped being the leader), starting with true. It
// has one reader, which receives the loss of every leadership that it received.
// Close closes the channel.
func (r *Raft) Leadership() <-chan bool { return r.leadership }

// Do starts a call and waits for its future, but no longer than ctx: Raft never answers
// if the disk hangs. It returns the future's error, raft.ErrRaftShutdown if Raft is
// closing or has shut down, or the cause of ctx. A call that ctx abandons may still
// take effect, and Close waits for it.
func (r *Raft) Do(ctx context.Context, start func() raft.Future) error {
	if !r.calls.add() {
		return raft.ErrRaftShutdown
	}
	f := start()
	done := make(chan error, 1)
	go func() {
		defer r.calls.done()
		done <- f.Error()
	}()
	select {
	case err := <-done:
		return err
	case <-r.down:
		return raft.ErrRaftShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close rejects new calls, waits for those in flight for up to two seconds, and
// shuts Raft down. The stores remain open; a transport that can be closed is
// closed. Further calls of Close return the first one's error.
func (r *Raft) Close() error {
	r.closeOnce.Do(func() {
		r.calls.drain(drainTimeout)
		r.closeErr = r.raft.Shutdown().Error()
		close(r.stop)
		r.goroutines.Wait()
	})
	return r.closeErr
}
