package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// maxAppend is how many entries go to a follower, and into one batch of
// applying, at once.
const maxAppend = 128

// Node is this server's part in the log.
type Node struct {
	cfg    Config
	raft   *raft.Raft
	fsm    *fsm
	leads  chan bool
	down   chan struct{} // closed once Raft has shut down
	stop   chan struct{}
	once   sync.Once
	joined sync.WaitGroup
	asked  questions
}

// Stats is what a node says of itself.
type Stats struct {
	State        string // Leader, Follower, Candidate or Shutdown
	Term         uint64
	LastIndex    uint64 // in the log
	CommitIndex  uint64
	AppliedIndex uint64
	StateIndex   uint64 // of the last command that is in the state
	FSMPending   uint64 // batches that wait to be applied
	SnapshotAt   uint64 // index of the newest snapshot
	LastContact  string // since the leader was heard, as Raft says it
	Servers      []raft.Server
	Err          error // why this server stopped applying the log; nil: it did not
}

// Open starts a node. It returns when the newest snapshot is in the store; what
// the log has beyond it follows.
func Open(cfg Config) (*Node, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	conf := cfg.Timing.raft()
	conf.LocalID = raft.ServerID(cfg.ServerID)
	conf.Logger = raftLogger(log)
	notify := make(chan bool)
	conf.NotifyCh = notify
	n := &Node{
		cfg: cfg, fsm: newFSM(&cfg, log), leads: make(chan bool),
		down: make(chan struct{}), stop: make(chan struct{}),
	}
	logs, err := trackCommits(cfg.Log, cfg.Snapshots, conf)
	if err != nil {
		return nil, err
	}
	trans, box := cfg.Transport, cfg.Timing.inbox(cfg.Transport, logs, cfg.Snapshots, n.fsm)
	if box != nil {
		trans = box
	}
	if n.raft, err = raft.NewRaft(conf, n.fsm, logs, cfg.Stable, placed{cfg.Snapshots}, trans); err != nil {
		if n.fsm.unread != nil {
			err = fmt.Errorf("%w: %w", err, n.fsm.unread)
		}
		return nil, fmt.Errorf("raft: %w", err)
	}
	if box != nil {
		n.joined.Go(func() { box.run(n.raft, n.stop) })
		n.joined.Go(func() { (&elections{raft: n.raft, self: conf.LocalID, heartbeat: conf.HeartbeatTimeout}).run(n.stop) })
	}
	states := make(chan raft.Observation, 1)
	n.raft.RegisterObserver(raft.NewObserver(states, true, func(o *raft.Observation) bool {
		return o.Data == raft.Shutdown
	}))
	n.joined.Go(func() { n.noticeShutdown(states) })
	n.joined.Go(func() { (&leadership{}).run(notify, n.leads, n.down, n.stop) })
	n.joined.Go(n.stopWithFSM)
	if err := n.fsm.version.tooOld(cfg.Store.Snapshot().Meta().Version); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// stopWithFSM takes this server out of the cluster once it cannot apply the log.
func (n *Node) stopWithFSM() {
	select {
	case <-n.fsm.halt:
		n.raft.Shutdown()
	case <-n.stop:
	}
}

// noticeShutdown has whoever waits for Raft wait no more when it is gone: it
// leaves some without an answer.
func (n *Node) noticeShutdown(states <-chan raft.Observation) {
	defer close(n.down)
	select {
	case <-states:
	case <-n.stop:
	}
}

// Done is closed when this server stopped because it cannot apply the log. Err
// tells why; it must be upgraded or repaired, and started again.
func (n *Node) Done() <-chan struct{} { return n.fsm.halt }

// Err is why this server stopped applying the log; nil while it does.
func (n *Node) Err() error { return n.fsm.stopped() }

// Close stops the node and waits for it. What it was given stays open, but for
// a transport that can be closed.
func (n *Node) Close() error {
	var err error
	n.once.Do(func() {
		n.asked.end(answerWithin)
		err = n.raft.Shutdown().Error()
		close(n.stop)
		n.joined.Wait()
	})
	return err
}

// Bootstrap makes the servers a cluster. Every one of them may do so with the
// same list; on a server that has a log it does nothing.
func (n *Node) Bootstrap(servers ...raft.Server) error {
	err := n.raft.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
	if errors.Is(err, raft.ErrCantBootstrap) {
		return nil
	}
	return err
}

// Apply has an entry written to the logs of a majority and applied here. A
// large batch of plans, or a long list of evaluations or of reports, becomes
// several entries; the result is that of all.
// It fails with ErrNotLeader (a *LeaderError), ErrBusy, ErrTooLarge, ErrClosed or
// the error of a ctx that was over before when nothing was written, and with
// ErrUnknownOutcome when that is not known.
func (n *Node) Apply(ctx context.Context, e *Entry) (*Result, error) {
	parts, err := n.encode(e)
	if err != nil {
		return nil, err
	}
	if answer := n.unfit(parts); answer != nil {
		return answer, nil
	}
	whole := &Result{} // what observers were told of each part is not ours to add to
	for i, p := range parts {
		result, err := n.apply(ctx, p.data)
		switch {
		case err != nil && i > 0:
			return nil, fmt.Errorf("%w: %d of %d parts were written: %w", ErrUnknownOutcome, i, len(parts), err)
		case err != nil:
			return nil, err
		}
		if len(parts) == 1 {
			return result, nil
		}
		p.join(whole, result)
	}
	return whole, nil
}

func (n *Node) apply(ctx context.Context, data []byte) (*Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n.raft.State() == raft.Shutdown {
		return nil, n.closed()
	}
	var future raft.ApplyFuture
	err := n.wait(ctx, func() raft.Future {
		future = n.raft.Apply(data, n.cfg.Timing.defaults().Apply)
		return future
	})
	if err != nil {
		return nil, n.explain(err)
	}
	switch answer := future.Response().(type) {
	case *Result:
		return answer, nil
	case error:
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, answer)
	default:
		return nil, fmt.Errorf("%w: answer %T", ErrUnknownOutcome, answer)
	}
}

// wait waits for what Raft says, but not longer than ctx: a disk that hangs
// keeps Raft from ever answering.
func (n *Node) wait(ctx context.Context, ask func() raft.Future) error {
	if !n.asked.begin() {
		return raft.ErrRaftShutdown
	}
	f := ask()
	done := make(chan error, 1)
	go func() {
		defer n.asked.answered()
		done <- f.Error()
	}()
	select {
	case err := <-done:
		return err
	case <-n.down:
		return raft.ErrRaftShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closed is ErrClosed, with the reason where it is not Close.
func (n *Node) closed() error {
	if halted := n.Err(); halted != nil {
		return fmt.Errorf("%w: %w", ErrClosed, halted)
	}
	return ErrClosed
}

// explain says what an error of Raft means for an entry.
func (n *Node) explain(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader):
		return n.notLeader()
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrBusy
	case errors.Is(err, raft.ErrRaftShutdown):
		err = n.closed()
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// explainRead says what an error of Raft means where nothing is written.
func (n *Node) explainRead(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return n.notLeader()
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrBusy
	case errors.Is(err, raft.ErrRaftShutdown):
		return n.closed()
	}
	return err
}

func (n *Node) notLeader() error {
	id, addr := n.Leader()
	if id == n.cfg.ServerID {
		id, addr = "", "" // it was, a moment ago
	}
	return &LeaderError{ID: id, Addr: addr}
}

// Leadership tells when this server becomes the leader and when it stops being
// it: true and false in turn, beginning with true. It is for one reader, who is
// told of every loss of a leadership that it was told of. Close closes it.
func (n *Node) Leadership() <-chan bool { return n.leads }

// IsLeader is whether this server believes to lead. VerifyLeader asks.
func (n *Node) IsLeader() bool { return n.raft.State() == raft.Leader }

// Leader is who leads; "" when nobody is known to.
func (n *Node) Leader() (id, addr string) {
	a, i := n.raft.LeaderWithID()
	return string(i), string(a)
}

// Term is the current term.
func (n *Node) Term() uint64 { return n.raft.CurrentTerm() }

// Barrier waits until everything that was committed before is in the store of
// this server, which must lead.
func (n *Node) Barrier(ctx context.Context) error {
	if n.raft.State() == raft.Shutdown {
		return n.closed()
	}
	return n.explainRead(n.wait(ctx, func() raft.Future { return n.raft.Barrier(untilDeadline(ctx)) }))
}

// VerifyLeader asks a majority whether this server still leads.
func (n *Node) VerifyLeader(ctx context.Context) error {
	if n.raft.State() == raft.Shutdown {
		return n.closed()
	}
	return n.explainRead(n.wait(ctx, n.raft.VerifyLeader))
}

// Transfer hands the leadership to the server that is furthest along.
func (n *Node) Transfer(ctx context.Context) error {
	return n.explainRead(n.wait(ctx, n.raft.LeadershipTransfer))
}

// untilDeadline is how much time ctx leaves; 0: as much as it takes.
func untilDeadline(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), 1) //nolint:forbidigo // a deadline is a matter of the real clock
}

// Raft is what is underneath, for membership and for settings that may change.
func (n *Node) Raft() *raft.Raft { return n.raft }

// Stats is what the node says of itself.
func (n *Node) Stats() Stats {
	r := n.raft
	told := r.Stats()
	number := func(key string) uint64 {
		v, _ := strconv.ParseUint(told[key], 10, 64)
		return v
	}
	s := Stats{
		State: r.State().String(), Term: r.CurrentTerm(), LastIndex: r.LastIndex(), CommitIndex: r.CommitIndex(),
		AppliedIndex: r.AppliedIndex(), StateIndex: n.cfg.Store.Snapshot().Index(), FSMPending: number("fsm_pending"),
		SnapshotAt: number("last_snapshot_index"), LastContact: told["last_contact"], Err: n.Err(),
	}
	if f := r.GetConfiguration(); f.Error() == nil {
		s.Servers = f.Configuration().Servers
	}
	return s
}
