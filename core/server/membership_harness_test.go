package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/membership"
)

// A memberPool is an in-memory implementation of gossip and of calls between servers. Every
// change is visible to all servers at once.
type memberPool struct {
	expect int

	mu           sync.Mutex
	members      map[string]membership.Member
	changed      map[string]chan struct{}
	servers      map[string]*Server
	cut          map[string]bool      // servers without network, for calls
	calls        map[string]int       // calls that reached a server, by "server method"
	refusedUntil map[string]time.Time // servers that refuse calls until then
	onLeave      func(id string)      // called with the ID of a leaving server; may be nil
	forgotten    map[string]bool      // by "server forgotten-server"
}

func newMemberPool() *memberPool {
	return &memberPool{
		expect: 3, members: map[string]membership.Member{}, changed: map[string]chan struct{}{}, servers: map[string]*Server{},
		cut: map[string]bool{}, calls: map[string]int{}, refusedUntil: map[string]time.Time{},
		forgotten: map[string]bool{},
	}
}

// add makes a server a member.
func (p *memberPool) add(m *member, cfg *Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := string(m.Address)
	was := p.members[m.id]
	p.members[m.id] = membership.Member{ID: m.id, Since: time.Now(), ClusterID: was.ClusterID, Raft: at, RPC: at, HTTP: "http://" + m.id, Expect: p.expect}
	p.changed[m.id] = make(chan struct{}, 1)
	cfg.Membership, cfg.Peers, cfg.Raft = &poolGossip{p, m.id}, &poolPeers{p, m.id}, m.node.Raft()
	cfg.Expect, cfg.Voters = p.expect, nil
	cfg.Pool = membership.Timing{Dead: 5 * time.Minute}
	p.notify()
}

// serve makes a server serve the calls of others.
func (p *memberPool) serve(id string, s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers[id] = s
}

// fail marks a server as failed.
func (p *memberPool) fail(id string) { p.set(id, membership.MemberFailed) }

func (p *memberPool) set(id string, status membership.MemberStatus) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[id]
	if m.Status == membership.MemberAlive {
		m.Status, m.Since = status, time.Now()
	}
	p.members[id] = m
	if status == membership.MemberFailed {
		delete(p.servers, id)
	}
	p.notify()
}

func (p *memberPool) notify() {
	for _, c := range p.changed {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (p *memberPool) setCut(id string, off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut[id] = off
}

func (p *memberPool) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[what]
}

type poolGossip struct {
	p  *memberPool
	id string
}

func (s *poolGossip) Members() []membership.Member {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	var list []membership.Member
	for _, m := range s.p.members {
		if m.Status == membership.MemberAlive || !s.p.forgotten[s.id+" "+m.ID] {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b membership.Member) int { return strings.Compare(a.ID, b.ID) })
	return list
}

func (s *poolGossip) Changed() <-chan struct{} {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.p.changed[s.id]
}

func (s *poolGossip) SetCluster(id string) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	m := s.p.members[s.id]
	m.ClusterID = id
	s.p.members[s.id] = m
	s.p.notify()
	return nil
}

// Forget removes a member for one server only: each has its own list.
func (s *poolGossip) Forget(id string) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.members[id].Status != membership.MemberAlive {
		s.p.forgotten[s.id+" "+id] = true
	}
}

func (s *poolGossip) Join(...string) (int, error) { return 0, errors.New("no server responds") }

func (s *poolGossip) Leave(context.Context) error {
	if s.p.onLeave != nil {
		s.p.onLeave(s.id)
	}
	s.p.set(s.id, membership.MemberLeft)
	return nil
}

func (s *poolGossip) Keyring(rpc.KeyVerb, []byte) ([]string, error) { return []string{s.id}, nil }

// A poolPeers is the client through which one server calls others.
type poolPeers struct {
	p    *memberPool
	from string
}

func (c *poolPeers) handlerOf(id, method string) (rpc.Handler, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	s := c.p.servers[id]
	if s == nil || c.p.cut[id] || c.p.cut[c.from] {
		return nil, fmt.Errorf("server %s: %w", id, rpc.ErrUnreachable)
	}
	if time.Now().Before(c.p.refusedUntil[id]) {
		return nil, fmt.Errorf("server %s: %w", id, rpc.ErrUnreachable)
	}
	c.p.calls[id+" "+method]++
	return s.RPCHandler(), nil
}

func (c *poolPeers) Status(ctx context.Context, to, begin string) (*rpc.Status, error) {
	h, err := c.handlerOf(to, "status")
	if err != nil {
		return nil, err
	}
	return h.Status(ctx, begin)
}

func (c *poolPeers) Dequeue(ctx context.Context, to string, most int, wait time.Duration) (*rpc.Deliveries, error) {
	h, err := c.handlerOf(to, "dequeue")
	if err != nil {
		return nil, err
	}
	d, err := h.Dequeue(ctx, most, wait)
	if _, lost := c.handlerOf(to, "answer"); lost != nil {
		return nil, lost // the response is lost
	}
	return d, err
}

func (c *poolPeers) UpdateDelivery(ctx context.Context, to string, s rpc.DeliveryUpdate) error {
	h, err := c.handlerOf(to, "settle")
	if err != nil {
		return err
	}
	return h.UpdateDelivery(ctx, s)
}

func (c *poolPeers) SubmitPlan(ctx context.Context, to string, plan []byte) ([]byte, error) {
	h, err := c.handlerOf(to, "plan")
	if err != nil {
		return nil, err
	}
	out, err := h.SubmitPlan(ctx, plan)
	if _, lost := c.handlerOf(to, "answer"); lost != nil {
		return nil, lost
	}
	return out, err
}

func (c *poolPeers) WriteEvals(ctx context.Context, to string, e rpc.EvalResults) error {
	h, err := c.handlerOf(to, "evals")
	if err != nil {
		return err
	}
	return h.WriteEvals(ctx, e)
}

func (c *poolPeers) Apply(ctx context.Context, to string, entry []byte) (rpc.Applied, error) {
	h, err := c.handlerOf(to, "apply")
	if err != nil {
		return rpc.Applied{}, err
	}
	return h.Apply(ctx, entry)
}

func (c *poolPeers) Keyring(ctx context.Context, to string, verb rpc.KeyVerb, key []byte) ([]string, error) {
	h, err := c.handlerOf(to, "keyring")
	if err != nil {
		return nil, err
	}
	return h.Keyring(ctx, verb, key)
}

// follower returns a server that does not lead.
func (w *harness) follower() *member {
	lead := w.leader()
	for _, m := range w.members {
		if m != lead && m.node != nil {
			return m
		}
	}
	w.t.Fatal("no follower")
	return nil
}

// waitVoters waits until exactly these servers are voters.
func (w *harness) waitVoters(ids ...string) {
	w.t.Helper()
	var got []string
	for range 1200 {
		if got = w.leader().server.Voters(); slices.Equal(slices.Sorted(slices.Values(got)), ids) {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	w.t.Fatalf("voters are %v, want %v", got, ids)
}
