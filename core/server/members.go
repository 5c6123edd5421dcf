package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

const (
	// changeWithin bounds one change of who belongs to the cluster.
	changeWithin = 10 * time.Second
	// leaveWithin bounds how long a server that leaves waits for another one to lead, and
	// then to be let go.
	leaveWithin = 15 * time.Second
	// askReleased is how often it looks whether it was let go.
	askReleased = 100 * time.Millisecond
)

// pooled is what a server does for its pool, whether it leads or not.
func (s *Server) pooled(ctx context.Context) {
	if s.cfg.Membership == nil {
		return
	}
	s.beginCluster(ctx)
	removed := removals{}
	for known := ""; ; {
		removed.look(s)
		if id := s.Snapshot().Meta().ClusterID; id != known && id != "" { // a restored snapshot may be of another one
			if err := s.cfg.Membership.SetCluster(id); err != nil {
				s.logger.WarnContext(ctx, "the pool was not told of the cluster", "err", err)
			} else {
				known = id
			}
		}
		if !clock.Sleep(ctx, s.cfg.Clock, s.cfg.Pool.Look) {
			return
		}
	}
}

// removals is the servers that belonged to the cluster at the last look or were removed
// since: true for those that belong.
type removals map[string]bool

// look has the pool forget servers that failed and were then removed from the cluster, by
// an operator or because they were away for too long: nobody waits for them, and they
// would be listed for as long as those of whom that may be hoped. Every server does so by
// itself. Whoever leaves is listed as one that left.
func (r removals) look(s *Server) {
	servers := s.servers()
	if len(servers) == 0 {
		return // it stops
	}
	for id := range r {
		r[id] = false
	}
	for _, server := range servers {
		r[string(server.ID)] = true
	}
	for id, belongs := range r {
		if belongs || id == s.cfg.ID {
			continue
		}
		if m, known := s.member(id); !known || m.Status == MemberFailed {
			s.cfg.Membership.Forget(id)
			delete(r, id)
		}
	}
}

// follow keeps who belongs to the cluster as the pool has it, on the leader. What
// the pool tells of may get lost, so all is compared now and then.
func (t *term) follow(ctx context.Context) {
	if t.cfg.Membership == nil || t.cfg.Raft == nil {
		return
	}
	var again time.Duration // until the next try, where the last one failed
	for {
		wait := t.cfg.Pool.Reconcile
		if t.reconcile(ctx) {
			again = 0
		} else {
			again = min(max(2*again, againAfter), wait)
			wait = again
		}
		limited, cancel := clock.WithTimeout(ctx, t.cfg.Clock, wait)
		select {
		case <-t.cfg.Membership.Changed():
		case <-limited.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// againAfter is how soon it is tried again to take a member in: a server gossips a
// moment before it answers. It is twice as long each time.
const againAfter = time.Second

// reconcile is whether everybody is taken over.
func (t *term) reconcile(ctx context.Context) bool {
	ok := true
	for _, m := range t.Members() {
		if ctx.Err() != nil {
			return false
		}
		var err error
		switch m.Status {
		case MemberAlive:
			err = t.takeIn(ctx, m)
		case MemberLeft:
			if _, there := t.inRaft(m.ID); there && m.ID != t.cfg.ID {
				err = t.remove(m.ID, "left")
			}
		case MemberFailed: // autopilot's business: it may be restarting
		}
		if err != nil {
			t.logger.WarnContext(ctx, "a member is not taken over", "server", m.ID, "status", m.Status.String(), "err", err)
			ok = false
		}
	}
	return ok
}

func (s *Server) inRaft(id string) (raft.Server, bool) {
	for _, r := range s.servers() {
		if string(r.ID) == id {
			return r, true
		}
	}
	return raft.Server{}, false
}

// takeIn adds a member that is there, or tells Raft that it moved.
func (t *term) takeIn(ctx context.Context, m Member) error {
	known, there := t.inRaft(m.ID)
	if there && string(known.Address) == m.Raft || m.Raft == "" {
		return nil
	}
	cluster := t.Snapshot().Meta().ClusterID
	if m.ClusterID != "" && m.ClusterID != cluster {
		return fmt.Errorf("it belongs to cluster %s", m.ClusterID)
	}
	if m.ID != t.cfg.ID {
		st, err := t.cfg.Peers.Status(ctx, m.ID, "")
		if err != nil {
			return err
		}
		if !there && m.ClusterID == "" && st.ClusterID == "" && st.LastIndex > 0 {
			// Raft would replace its log by ours. A server that was killed in the first
			// moments of its cluster does not know whose it is before it leads again.
			return fmt.Errorf("it has a log of %d entries and does not say of which cluster: empty its data directory if nothing in it is needed", st.LastIndex)
		}
		if st.ClusterID != "" && st.ClusterID != cluster {
			return fmt.Errorf("it belongs to cluster %s", st.ClusterID)
		}
		if err := t.mayJoin(st); err != nil {
			return err
		}
	}
	if err := t.clearAddress(m); err != nil {
		return err
	}
	id, address := raft.ServerID(m.ID), raft.ServerAddress(m.Raft)
	if there && known.Suffrage == raft.Voter {
		t.logger.InfoContext(ctx, "server moved", "server", m.ID, "address", m.Raft)
		return t.cfg.Raft.AddVoter(id, address, 0, changeWithin).Error()
	}
	t.logger.InfoContext(ctx, "server taken in", "server", m.ID, "address", m.Raft)
	return t.cfg.Raft.AddNonvoter(id, address, 0, changeWithin).Error()
}

// clearAddress removes a server that is gone and whose address the member has now:
// one that came back with an empty disk has another id.
func (t *term) clearAddress(m Member) error {
	for _, r := range t.servers() {
		if string(r.Address) != m.Raft || string(r.ID) == m.ID {
			continue
		}
		if other, known := t.member(string(r.ID)); known && other.Status == MemberAlive && other.Raft == m.Raft {
			return fmt.Errorf("server %s is at %s as well", r.ID, m.Raft)
		} else if known && other.Status == MemberAlive {
			continue // it moved, and is told so in its turn
		}
		if err := t.remove(string(r.ID), "its address belongs to server "+m.ID+" now"); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) remove(id, why string) error {
	s.logger.Info("server removed", "server", id, "reason", why)
	return s.cfg.Raft.RemoveServer(raft.ServerID(id), 0, changeWithin).Error()
}

// noPool is the error of what needs a pool.
func noPool() error {
	return apierror.New(apierror.CodeUnavailable, "this server has no pool").WithHint("set listen.gossip, and server.join or server.bootstrap_expect, and restart it")
}

// JoinPool joins the pool through members at addresses, and returns through how
// many it did.
func (s *Server) JoinPool(_ context.Context, addrs ...string) (int, error) {
	if s.cfg.Membership == nil {
		return 0, noPool()
	}
	if len(addrs) == 0 {
		return 0, apierror.New(apierror.CodeInvalid, "no address to join is given").WithHint("HOST:PORT of any member's gossip")
	}
	n, err := s.cfg.Membership.Join(addrs...)
	if err != nil && n == 0 {
		e := apierror.New(apierror.CodeUnavailable, "the pool was not joined: %v", err)
		e.Err = err
		return 0, e.WithHint("check the address, and that gossip.name, region and gossip.keys are the same everywhere")
	}
	return n, nil
}

// LeavePool hands the lead over, tells the pool that this server goes for good, and
// waits until it is no part of the cluster any more. It must then be stopped.
func (s *Server) LeavePool(ctx context.Context) error {
	if s.cfg.Membership == nil {
		return noPool()
	}
	voters := s.voters()
	if len(voters) < 2 {
		return apierror.New(apierror.CodeConflict, "this is the only server that votes").WithHint("a cluster without servers is none: stop it instead")
	}
	if err := s.handOver(ctx); err != nil {
		return err
	}
	if err := s.cfg.Membership.Leave(ctx); err != nil {
		s.logger.WarnContext(ctx, "not everybody may have heard that this server leaves", "err", err)
	}
	limited, cancel := clock.WithTimeout(ctx, s.cfg.Clock, leaveWithin)
	defer cancel()
	for !s.released(limited) {
		if !clock.Sleep(limited, s.cfg.Clock, askReleased) {
			return apierror.New(apierror.CodeUnavailable, "the leader did not let this server go within %v", leaveWithin).
				WithHint("the pool knows that it leaves: stop it, and see `cede operator raft` on another one")
		}
	}
	return nil
}

// released is whether this server is no part of the cluster any more. It may not hear of
// that by itself: Raft tries once to tell a server that it is removed, and then talks to it
// no more. So the others are asked, of whom the one that leads knows.
func (s *Server) released(ctx context.Context) bool {
	if _, there := s.inRaft(s.cfg.ID); !there || s.cfg.Raft.State() == raft.Shutdown {
		return true
	}
	for _, m := range s.Members() {
		if m.ID == s.cfg.ID || m.Status != MemberAlive {
			continue
		}
		st, err := s.cfg.Peers.Status(ctx, m.ID, "")
		if err == nil && st.LeaderID == m.ID && len(st.Servers) > 0 && !slices.Contains(st.Servers, s.cfg.ID) {
			return true
		}
	}
	return false
}

// handOver has another server lead. One attempt lasts no longer than an election, and
// whoever is to take over may be busy for that long, so there are several.
func (s *Server) handOver(ctx context.Context) error {
	limited, cancel := clock.WithTimeout(ctx, s.cfg.Clock, leaveWithin)
	defer cancel()
	for s.cfg.Log.IsLeader() {
		err := s.cfg.Log.Transfer(limited)
		if err == nil {
			return nil
		}
		if !clock.Sleep(limited, s.cfg.Clock, 200*time.Millisecond) {
			e := apierror.New(apierror.CodeUnavailable, "nobody took the lead over within %v: %v", leaveWithin, err)
			e.Err = err
			return e.WithHint("another server must be up to date: `cede operator raft`")
		}
	}
	return nil
}

// RemovePeer removes a server from the cluster that will not come back.
func (s *Server) RemovePeer(_ context.Context, id string) error {
	if err := s.writer.CheckLeader(); err != nil {
		return err
	}
	if s.cfg.Raft == nil {
		return noPool()
	}
	known, there := s.inRaft(id)
	switch {
	case !there && s.listed(id):
		return apierror.New(apierror.CodeNotFound, "server %q does not belong to the cluster any more", id).WithHint("the pool lists it for a while, and nobody waits for it")
	case !there:
		return apierror.New(apierror.CodeNotFound, "server %q does not belong to the cluster", id).WithHint("`cede operator raft` lists who does")
	case id == s.cfg.ID:
		return apierror.New(apierror.CodeConflict, "server %s leads", id).WithHint("have another one lead, or use `cede server leave` on it")
	}
	if m, known := s.member(id); known && m.Status == MemberAlive {
		return apierror.New(apierror.CodeConflict, "server %s is alive and would be taken in again", id).WithHint("`cede server leave` on it, or stop it first")
	}
	if err := s.remove(string(known.ID), "an operator wants it"); err != nil {
		return s.writer.Unwritten(err)
	}
	return nil
}

// listed is whether the pool lists a server as one that is gone.
func (s *Server) listed(id string) bool {
	m, known := s.member(id)
	return known && m.Status != MemberAlive
}

// KeyringAnswer is what one server says of its keys.
type KeyringAnswer struct {
	Server string
	Keys   []string // digests, the one that seals first
	Err    error
}

// Keyring reads or changes the keys of gossip on every server. A step of a rotation is
// done when no answer has an error: one that is down would be locked out by the next step.
func (s *Server) Keyring(ctx context.Context, verb rpc.KeyVerb, key []byte) ([]KeyringAnswer, error) {
	if n := len(key); verb != rpc.KeyList && n != 16 && n != 24 && n != 32 {
		return nil, apierror.New(apierror.CodeInvalid, "the key has %d bytes: a key has 16, 24 or 32", n).WithHint("`openssl rand -base64 32` makes one")
	}
	if s.cfg.Membership == nil {
		return nil, noPool()
	}
	var list []KeyringAnswer
	members := s.Members()
	for _, m := range members {
		a := KeyringAnswer{Server: m.ID}
		switch {
		case m.Status == MemberLeft:
			continue
		case m.Status == MemberFailed:
			a.Err = errKeyless
		case m.ID == s.cfg.ID:
			a.Keys, a.Err = s.cfg.Membership.Keyring(verb, key)
		default:
			a.Keys, a.Err = s.cfg.Peers.Keyring(ctx, m.ID, verb, key)
		}
		list = append(list, a)
	}
	for _, r := range s.servers() { // after a restart of all, gossip knows nobody
		if !slices.ContainsFunc(members, func(m Member) bool { return m.ID == string(r.ID) }) {
			list = append(list, KeyringAnswer{Server: string(r.ID), Err: errKeyless})
		}
	}
	return list, nil
}

// errKeyless is of a server whose keys cannot be changed now.
var errKeyless = errors.New("it is down: start it, or remove it for good (`cede operator raft remove`)")

// voters is the ids of the servers that vote.
func (s *Server) voters() []string {
	var ids []string
	for _, r := range s.servers() {
		if r.Suffrage == raft.Voter {
			ids = append(ids, string(r.ID))
		}
	}
	if len(ids) == 0 {
		return []string{s.cfg.ID}
	}
	return ids
}
