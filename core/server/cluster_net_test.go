package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/membership"
)

// lossTimeout is how long a caller waits for what was lost.
const lossTimeout = 300 * time.Millisecond

// errLost is a call of which the question or the answer was lost.
var errLost = errors.New("no answer came")

// simNetwork carries messages between servers, nodes and clients, by their ids. A
// question and its answer are messages of their own, so that what was asked may have
// been done without anybody knowing.
type simNetwork struct {
	seed    uint64
	servers []string

	mu    sync.Mutex
	rand  *rand.Rand
	cut   map[[2]string]int        // links that carry nothing, from and to; by how many faults
	paused  map[string]chan struct{} // who is paused: what comes and goes waits until it is closed
	lastPause time.Time                // when somebody was last paused, or went on
	hanging  map[string]int           // servers that answer nobody but Raft; by how many faults
	alone map[string]time.Time     // servers that are cut off from every other one, since when
	lose  float64                  // part of the messages that are lost
	duplicate float64                  // part of those between servers' logs that come twice
	late  time.Duration            // that a message takes at most
	// leads is who sent entries as the leader of a term.
	leads map[uint64]string
	wrong func(format string, args ...any)
}

func newSimNetwork(seed uint64, wrong func(string, ...any)) *simNetwork {
	return &simNetwork{
		seed: seed, rand: rand.New(rand.NewPCG(seed, 2)), cut: map[[2]string]int{}, paused: map[string]chan struct{}{}, hanging: map[string]int{}, alone: map[string]time.Time{},
		late: 4 * time.Millisecond, leads: map[uint64]string{}, wrong: wrong,
	}
}

// randomDuration is a random duration.
func (n *simNetwork) randomDuration(d time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(n.rand.Int64N(int64(d)))
}

// isDuplicated is whether a message comes twice.
func (n *simNetwork) isDuplicated() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.duplicate > 0 && n.rand.Float64() < n.duplicate
}

// setCut cuts what goes from one to another, or undoes one such fault.
func (n *simNetwork) setCut(from, to string, off bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if off {
		n.cut[[2]string{from, to}]++
	} else {
		n.cut[[2]string{from, to}]--
	}
	for _, id := range n.servers {
		if was := n.alone[id]; !n.cutOff(id) {
			delete(n.alone, id)
		} else if was.IsZero() {
			n.alone[id] = time.Now()
		}
	}
}

// cutOff is whether a server and every other one hear nothing of each other. n.mu is held.
func (n *simNetwork) cutOff(id string) bool {
	for _, other := range n.servers {
		if other != id && (n.cut[[2]string{id, other}] == 0 || n.cut[[2]string{other, id}] == 0) {
			return false
		}
	}
	return true
}

// aloneSince is since when a server is cut off from every other one, and no message that
// somebody held up may come late; zero: it is not.
func (n *simNetwork) aloneSince(id string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	since := n.alone[id]
	if len(n.paused) > 0 || n.lastPause.After(since) {
		return time.Time{}
	}
	return since
}

// pause pauses somebody, or has it go on.
func (n *simNetwork) pause(id string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastPause = time.Now()
	switch c := n.paused[id]; {
	case on && c == nil:
		n.paused[id] = make(chan struct{})
	case !on && c != nil:
		close(c)
		delete(n.paused, id)
	}
}

// setQuality is how much is lost, comes twice, and how long messages take.
func (n *simNetwork) setQuality(lose, twice float64, late time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose, n.duplicate, n.late = lose, twice, late
}

// waiting is closed when neither is paused; nil: neither is.
func (n *simNetwork) waiting(from, to string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.paused[from]; c != nil {
		return c
	}
	if c := n.paused[to]; c != nil {
		return c
	}
	return nil
}

// deliver is one message. It is false when it does not arrive: it is lost, or one of
// the two is dead, which is when these channels are closed; nil: it cannot die.
func (n *simNetwork) deliver(from, to string, dead, otherDead <-chan struct{}) bool {
	n.mu.Lock()
	lost := n.cut[[2]string{from, to}] > 0 || n.lose > 0 && n.rand.Float64() < n.lose
	took := time.Duration(n.rand.Int64N(int64(n.late)))
	n.mu.Unlock()
	time.Sleep(took)
	for c := n.waiting(from, to); c != nil; c = n.waiting(from, to) {
		select {
		case <-c:
		case <-dead:
			return false
		case <-otherDead:
			return false
		}
	}
	select {
	case <-dead:
		return false
	case <-otherDead:
		return false
	default:
		return !lost
	}
}

// call is a call: a question, what is done with it, and an answer.
func (n *simNetwork) call(from, to string, do func() error, dead, otherDead <-chan struct{}) error {
	if !n.deliver(from, to, dead, otherDead) {
		time.Sleep(lossTimeout)
		return errLost
	}
	err := do()
	if !n.deliver(to, from, otherDead, dead) {
		time.Sleep(lossTimeout)
		return errLost
	}
	return err
}

// setHanging has a server answer nobody but Raft, or undoes one such fault: the pool takes it
// for alive, and whoever asks it anything hears nothing.
func (n *simNetwork) setHanging(id string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if on {
		n.hanging[id]++
	} else {
		n.hanging[id]--
	}
}

// request is a call of anything but Raft.
func (n *simNetwork) request(from, to string, do func() error, dead, otherDead <-chan struct{}) error {
	n.mu.Lock()
	deaf := n.hanging[to] > 0
	n.mu.Unlock()
	if deaf {
		time.Sleep(lossTimeout)
		return errLost
	}
	return n.call(from, to, do, dead, otherDead)
}

// leader notes who acts as the leader of a term. There is one.
func (n *simNetwork) leader(term uint64, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if other := n.leads[term]; other != "" && other != id {
		n.wrong("servers %s and %s both lead in term %d", other, id, term)
	}
	n.leads[term] = id
}

// simLink is the network as Raft of one server sees it. There is no pipeline, as
// there is none in ours.
type simLink struct {
	*raft.InmemTransport
	run *simRun
}

var (
	_ raft.Transport   = (*simLink)(nil)
	_ raft.WithPreVote = (*simLink)(nil)
)

// call sends a message of Raft, perhaps twice. send makes an answer of its own.
func (l *simLink) call(to raft.ServerAddress, send func() (keep func(), err error)) error {
	net := l.run.of.c.net
	other := l.run.of.c.server(string(to)).run.Load()
	if other == nil {
		return errLost
	}
	once := func() (func(), error) {
		var keep func()
		err := net.call(l.run.of.id, string(to), func() (err error) {
			keep, err = send()
			return err
		}, l.run.dead, other.dead)
		return keep, err
	}
	if net.isDuplicated() {
		l.run.of.c.group.Go(func() { _, _ = once() })
	}
	keep, err := once()
	if err == nil {
		keep()
	}
	return err
}

// AppendEntries implements raft.Transport.
func (l *simLink) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	l.run.of.c.net.leader(args.Term, l.run.of.id)
	return l.call(to, func() (func(), error) {
		var own raft.AppendEntriesResponse
		err := l.InmemTransport.AppendEntries(id, to, args, &own)
		return func() { *resp = own }, err
	})
}

// RequestVote implements raft.Transport.
func (l *simLink) RequestVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return l.call(to, func() (func(), error) {
		var own raft.RequestVoteResponse
		err := l.InmemTransport.RequestVote(id, to, args, &own)
		return func() { *resp = own }, err
	})
}

// RequestPreVote implements raft.WithPreVote.
func (l *simLink) RequestPreVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return l.call(to, func() (func(), error) {
		var own raft.RequestPreVoteResponse
		err := l.InmemTransport.RequestPreVote(id, to, args, &own)
		return func() { *resp = own }, err
	})
}

// maxSnapshotDelay is how long a snapshot may lie on a connection that its sender gave up.
const maxSnapshotDelay = 20 * time.Second

// InstallSnapshot implements raft.Transport. What comes twice comes late: the sender
// gave up one connection, and sent it again by another.
func (l *simLink) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	net := l.run.of.c.net
	other := l.run.of.c.server(string(to)).run.Load()
	if other == nil {
		return errLost
	}
	whole, err := io.ReadAll(data)
	if err != nil {
		return err
	}
	once := func(resp *raft.InstallSnapshotResponse) error {
		return net.call(l.run.of.id, string(to), func() error {
			return l.InmemTransport.InstallSnapshot(id, to, args, resp, bytes.NewReader(whole))
		}, l.run.dead, other.dead)
	}
	if net.isDuplicated() {
		l.run.of.c.group.Go(func() {
			time.Sleep(net.randomDuration(maxSnapshotDelay))
			_ = once(&raft.InstallSnapshotResponse{})
		})
	}
	return once(resp)
}

// TimeoutNow implements raft.Transport.
func (l *simLink) TimeoutNow(id raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return l.call(to, func() (func(), error) {
		var own raft.TimeoutNowResponse
		err := l.InmemTransport.TimeoutNow(id, to, args, &own)
		return func() { *resp = own }, err
	})
}

// AppendEntriesPipeline implements raft.Transport.
func (*simLink) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// simPeers is how one server asks others.
type simPeers struct{ run *simRun }

var _ Peers = simPeers{}

// callPeer has another server answer.
func callPeer[T any](p simPeers, to string, f func(h rpc.Handler) (T, error)) (T, error) {
	var answer T
	other := p.run.of.c.server(to).run.Load()
	if other == nil || other.server == nil {
		return answer, fmt.Errorf("server %s: %w", to, rpc.ErrUnreachable)
	}
	err := p.run.of.c.net.request(p.run.of.id, to, func() (err error) {
		answer, err = f(other.server.RPCHandler())
		return err
	}, p.run.dead, other.dead)
	if errors.Is(err, errLost) {
		var none T
		return none, fmt.Errorf("server %s: %w", to, rpc.ErrUnreachable)
	}
	return answer, err
}

func (p simPeers) Status(ctx context.Context, to, begin string) (*rpc.Status, error) {
	return callPeer(p, to, func(h rpc.Handler) (*rpc.Status, error) { return h.Status(ctx, begin) })
}

func (p simPeers) Dequeue(ctx context.Context, to string, most int, wait time.Duration) (*rpc.Deliveries, error) {
	return callPeer(p, to, func(h rpc.Handler) (*rpc.Deliveries, error) { return h.Dequeue(ctx, most, wait) })
}

func (p simPeers) UpdateDelivery(ctx context.Context, to string, s rpc.DeliveryUpdate) error {
	_, err := callPeer(p, to, func(h rpc.Handler) (struct{}, error) { return struct{}{}, h.UpdateDelivery(ctx, s) })
	return err
}

func (p simPeers) SubmitPlan(ctx context.Context, to string, plan []byte) ([]byte, error) {
	return callPeer(p, to, func(h rpc.Handler) ([]byte, error) { return h.SubmitPlan(ctx, plan) })
}

func (p simPeers) WriteEvals(ctx context.Context, to string, e rpc.EvalResults) error {
	_, err := callPeer(p, to, func(h rpc.Handler) (struct{}, error) { return struct{}{}, h.WriteEvals(ctx, e) })
	return err
}

func (p simPeers) Apply(ctx context.Context, to string, entry []byte) (rpc.Applied, error) {
	return callPeer(p, to, func(h rpc.Handler) (rpc.Applied, error) { return h.Apply(ctx, entry) })
}

func (p simPeers) Keyring(ctx context.Context, to string, verb rpc.KeyVerb, key []byte) ([]string, error) {
	return callPeer(p, to, func(h rpc.Handler) ([]string, error) { return h.Keyring(ctx, verb, key) })
}

// simGossip is a server's place in gossip, which tells everybody everything at once;
// what gossip makes of a bad network, core/server takes as a hint alone.
type simGossip struct{ run *simRun }

var _ membership.Gossip = simGossip{}

func (s simGossip) Members() []membership.Member {
	var list []membership.Member
	for _, o := range s.run.of.c.servers {
		m := membership.Member{ID: o.id, Since: o.since(), Raft: o.id, RPC: o.id, HTTP: "http://" + o.id, Expect: simVotes}
		if r := o.run.Load(); r != nil {
			m.ClusterID = r.disk.clusterID()
		} else {
			m.Status = membership.MemberFailed
		}
		if o.left.Load() {
			m.Status = membership.MemberLeft
		}
		if o.began.Load() > 0 { // the pool has heard of it
			list = append(list, m)
		}
	}
	return list
}

func (s simGossip) Changed() <-chan struct{} { return nil }

func (s simGossip) Forget(string) {} // who is removed may come back

func (s simGossip) SetCluster(id string) error { return s.run.disk.storeClusterID(id) }

func (simGossip) Join(...string) (int, error) { return 0, errLost }

func (s simGossip) Leave(context.Context) error {
	s.run.of.left.Store(true)
	return nil
}

func (s simGossip) Keyring(rpc.KeyVerb, []byte) ([]string, error) { return []string{s.run.of.id}, nil }
