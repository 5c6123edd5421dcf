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

	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/membership"
)

// lossTimeout is the time after which a caller gives up on a lost message.
const lossTimeout = 300 * time.Millisecond

// errLost is returned if the request or the response of a call was lost.
var errLost = errors.New("no response received")

// A simNetwork delivers messages between servers, nodes and clients, by ID. Request and
// response are separate messages, so a call may take effect although its caller receives no
// response.
type simNetwork struct {
	seed    uint64
	servers []string

	mu        sync.Mutex
	rand      *rand.Rand
	cut       map[[2]string]int        // links that deliver nothing, from and to; by number of faults
	paused    map[string]chan struct{} // paused endpoints: their messages wait until the channel is closed
	lastPause time.Time                // time of the last pause or its end
	hanging   map[string]int           // servers that respond only to Raft; by number of faults
	isolated  map[string]time.Time     // servers that are cut off from all others, and since when
	lose      float64                  // fraction of messages that are lost
	duplicate float64                  // fraction of Raft messages that are duplicated
	late      time.Duration            // maximum delay of a message
	// leads holds the server that sent entries as the leader of a term.
	leads map[uint64]string
	wrong func(format string, args ...any)
}

func newSimNetwork(seed uint64, wrong func(string, ...any)) *simNetwork {
	return &simNetwork{
		seed: seed, rand: rand.New(rand.NewPCG(seed, 2)), cut: map[[2]string]int{}, paused: map[string]chan struct{}{}, hanging: map[string]int{}, isolated: map[string]time.Time{},
		late: 4 * time.Millisecond, leads: map[uint64]string{}, wrong: wrong,
	}
}

// randomDuration returns a random duration up to d.
func (n *simNetwork) randomDuration(d time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Duration(n.rand.Int64N(int64(d)))
}

// isDuplicated reports whether a message is delivered twice.
func (n *simNetwork) isDuplicated() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.duplicate > 0 && n.rand.Float64() < n.duplicate
}

// setCut cuts the link from one endpoint to another, or ends one such fault.
func (n *simNetwork) setCut(from, to string, off bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if off {
		n.cut[[2]string{from, to}]++
	} else {
		n.cut[[2]string{from, to}]--
	}
	for _, id := range n.servers {
		if was := n.isolated[id]; !n.cutOff(id) {
			delete(n.isolated, id)
		} else if was.IsZero() {
			n.isolated[id] = time.Now()
		}
	}
}

// cutOff reports whether a server is cut off from all others. n.mu is held.
func (n *simNetwork) cutOff(id string) bool {
	for _, other := range n.servers {
		if other != id && (n.cut[[2]string{id, other}] == 0 || n.cut[[2]string{other, id}] == 0) {
			return false
		}
	}
	return true
}

// isolatedSince returns the time since when a server is cut off from all others and no delayed
// message can arrive; zero: it is not cut off.
func (n *simNetwork) isolatedSince(id string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	since := n.isolated[id]
	if len(n.paused) > 0 || n.lastPause.After(since) {
		return time.Time{}
	}
	return since
}

// pause pauses or resumes an endpoint.
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

// setQuality sets the loss, duplication and delay of messages.
func (n *simNetwork) setQuality(lose, twice float64, late time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose, n.duplicate, n.late = lose, twice, late
}

// waiting returns a channel that is closed when neither endpoint is paused, or nil if none
// is.
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

// deliver delivers one message and returns false if it does not arrive: it is lost, or one
// of the endpoints crashed, which closes its channel; a nil channel belongs to an endpoint
// that cannot crash.
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

// call delivers a request, runs it, and delivers the response.
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

// setHanging makes a server respond only to Raft, or ends one such fault. Gossip considers
// it alive, but its calls receive no response.
func (n *simNetwork) setHanging(id string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if on {
		n.hanging[id]++
	} else {
		n.hanging[id]--
	}
}

// request is a call other than one of Raft.
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

// leader records the leader of a term, and fails if there are two.
func (n *simNetwork) leader(term uint64, id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if other := n.leads[term]; other != "" && other != id {
		n.wrong("servers %s and %s both lead in term %d", other, id, term)
	}
	n.leads[term] = id
}

// A simLink is the network of the Raft node of one server.
type simLink struct {
	replicationtest.Transport
	run *simRun
}

var (
	_ raft.Transport   = (*simLink)(nil)
	_ raft.WithPreVote = (*simLink)(nil)
)

// call sends a Raft message, possibly twice. Each send has its own response.
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

// maxSnapshotDelay is how long a snapshot may remain in a connection that its sender
// closed.
const maxSnapshotDelay = 20 * time.Second

// InstallSnapshot implements raft.Transport. A duplicate arrives late: the sender closed
// one connection, and sent the snapshot again on another.
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

// simPeers is the client through which one server calls others.
type simPeers struct{ run *simRun }

var _ Peers = simPeers{}

// callPeer runs f on another server.
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

// simGossip is the gossip of one server. It delivers every change at once: core/server uses
// gossip only as a hint, so its delays are not simulated.
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
		if o.began.Load() > 0 { // it is listed in the pool
			list = append(list, m)
		}
	}
	return list
}

func (s simGossip) Changed() <-chan struct{} { return nil }

func (s simGossip) Forget(string) {} // a removed server may come back

func (s simGossip) SetCluster(id string) error { return s.run.disk.storeClusterID(id) }

func (simGossip) Join(...string) (int, error) { return 0, errLost }

func (s simGossip) Leave(context.Context) error {
	s.run.of.left.Store(true)
	return nil
}

func (s simGossip) Keyring(rpc.KeyVerb, []byte) ([]string, error) { return []string{s.run.of.id}, nil }
