package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

const (
	// changeTimeout is the time limit of one change of Raft's configuration.
	changeTimeout = 10 * time.Second
	// leaveTimeout is how long a server that leaves waits for another leader, and then for
	// its removal.
	leaveTimeout = 15 * time.Second
	// releasePoll is the interval at which a server that leaves checks for its removal.
	releasePoll = 100 * time.Millisecond
	// transferRetry is the wait between two attempts to transfer leadership.
	transferRetry = 200 * time.Millisecond
)

// JoinPool joins the pool through members at the addresses. It returns through how many
// it succeeded.
func (m *Manager) JoinPool(_ context.Context, addrs ...string) (int, error) {
	if m.cfg.Gossip == nil {
		return 0, errNoPool()
	}
	if len(addrs) == 0 {
		return 0, apierror.New(apierror.CodeInvalid, "an address to join is required").WithHint("give HOST:PORT of the gossip of any member")
	}
	n, err := m.cfg.Gossip.Join(addrs...)
	if err != nil && n == 0 {
		return 0, apierror.New(apierror.CodeUnavailable, "cannot join the pool: %v", err).WithCause(err).
			WithHint("check the address, and that gossip.name, region and gossip.keys are the same everywhere")
	}
	return n, nil
}

// LeavePool transfers leadership if this server leads, announces that it leaves for good,
// and waits until it is removed from the cluster. The server must then be stopped.
func (m *Manager) LeavePool(ctx context.Context) error {
	if m.cfg.Gossip == nil {
		return errNoPool()
	}
	if len(m.Voters()) < 2 {
		return apierror.New(apierror.CodeConflict, "this is the only voting server").WithHint("a cluster needs at least one server: stop it instead")
	}
	if err := m.transferLeadership(ctx); err != nil {
		return err
	}
	if err := m.cfg.Gossip.Leave(ctx); err != nil {
		m.cfg.Logger.WarnContext(ctx, "failed to notify some members that this server leaves", "err", err)
	}
	limited, cancel := clock.WithTimeout(ctx, m.cfg.Clock, leaveTimeout)
	defer cancel()
	for !m.isRemoved(limited) {
		if !clock.Sleep(limited, m.cfg.Clock, releasePoll) {
			return apierror.New(apierror.CodeUnknownOutcome, "the leader did not remove this server within %v", leaveTimeout).
				WithHint("the pool has been notified: stop it, and see `cede operator raft` on another one")
		}
	}
	return nil
}

// isRemoved reports whether this server has been removed from the cluster. The server may
// not learn that from its own log: Raft tries once to send the removal, and then sends
// nothing more. So the member that leads is called.
func (m *Manager) isRemoved(ctx context.Context) bool {
	if _, ok := m.RaftServer(m.cfg.ServerID); !ok || m.cfg.Raft.State() == raft.Shutdown {
		return true
	}
	for _, member := range m.Members() {
		if member.ID == m.cfg.ServerID || member.Status != MemberAlive {
			continue
		}
		st, err := m.cfg.Peers.Status(ctx, member.ID, "")
		if err == nil && st.LeaderID == member.ID && len(st.Servers) > 0 && !slices.Contains(st.Servers, m.cfg.ServerID) {
			return true
		}
	}
	return false
}

// transferLeadership transfers leadership if this server leads. One attempt takes as long
// as an election, for which the target may be busy, so there are several.
func (m *Manager) transferLeadership(ctx context.Context) error {
	limited, cancel := clock.WithTimeout(ctx, m.cfg.Clock, leaveTimeout)
	defer cancel()
	for m.cfg.Log.IsLeader() {
		err := m.cfg.Log.Transfer(limited)
		if err == nil {
			return nil
		}
		if !clock.Sleep(limited, m.cfg.Clock, transferRetry) {
			return apierror.New(apierror.CodeUnavailable, "no server took over leadership within %v: %v", leaveTimeout, err).WithCause(err).
				WithHint("another server must be up to date: `cede operator raft`")
		}
	}
	return nil
}

// RemovePeer removes a server that will not come back from the cluster.
func (m *Manager) RemovePeer(_ context.Context, id string) error {
	if err := m.cfg.Writer.CheckLeader(); err != nil {
		return err
	}
	if m.cfg.Raft == nil {
		return apierror.New(apierror.CodeConflict, "cannot remove server %.60q: gossip is disabled on this server, so that it is the only one", id).
			WithHint("to form a cluster, set listen.gossip, and server.join or server.bootstrap_expect, and restart it")
	}
	server, ok := m.RaftServer(id)
	member, known := m.Member(id)
	switch {
	case !ok && known && member.Status != MemberAlive:
		return apierror.New(apierror.CodeNotFound, "server %q no longer belongs to the cluster", id).WithHint("the pool lists it for some more time, without effect")
	case !ok:
		return apierror.New(apierror.CodeNotFound, "server %q does not belong to the cluster", id).WithHint("`cede operator raft` lists its servers")
	case id == m.cfg.ServerID:
		return apierror.New(apierror.CodeConflict, "server %s is the leader", id).WithHint("transfer leadership first, or use `cede server leave` on it")
	case known && member.Status == MemberAlive:
		return apierror.New(apierror.CodeConflict, "server %s is alive and would be added again", id).WithHint("`cede server leave` on it, or stop it first")
	}
	if err := m.remove(string(server.ID), "removed by an operator"); err != nil {
		return m.cfg.Writer.Unwritten(changeError(err))
	}
	return nil
}

// changeError translates Raft's error for a change of the servers.
func changeError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader):
		return replication.ErrNotLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return replication.ErrBusy
	}
	return fmt.Errorf("%w: %w", replication.ErrUnknownOutcome, err)
}

func (m *Manager) remove(id, reason string) error {
	m.cfg.Logger.Info("server removed", "server", id, "reason", reason)
	return m.cfg.Raft.RemoveServer(raft.ServerID(id), 0, changeTimeout).Error()
}

// KeyringAnswer holds the keys of one server.
type KeyringAnswer struct {
	Server string
	Keys   []string // digests, the primary key first
	Err    error
}

// errServerDown is returned for a server that is down, so that its keys cannot be changed.
var errServerDown = errors.New("server is down: start it, or remove it for good (`cede operator raft remove`)")

// Keyring reads or changes the gossip keys of every server. A step of a rotation is
// complete if no answer has an error: a server that is down would be locked out by the
// next step.
func (m *Manager) Keyring(ctx context.Context, verb rpc.KeyVerb, key []byte) ([]KeyringAnswer, error) {
	if n := len(key); verb != rpc.KeyList && n != 16 && n != 24 && n != 32 {
		return nil, apierror.New(apierror.CodeInvalid, "invalid gossip key: it has %d bytes, and must have 16, 24 or 32", n).
			WithHint("`openssl rand -base64 32` generates one")
	}
	if m.cfg.Gossip == nil {
		return nil, errNoPool()
	}
	var list []KeyringAnswer
	members := m.Members()
	for _, member := range members {
		a := KeyringAnswer{Server: member.ID}
		switch {
		case member.Status == MemberLeft:
			continue
		case member.Status == MemberFailed:
			a.Err = errServerDown
		case member.ID == m.cfg.ServerID:
			a.Keys, a.Err = m.cfg.Gossip.Keyring(verb, key)
		default:
			a.Keys, a.Err = m.cfg.Peers.Keyring(ctx, member.ID, verb, key)
		}
		list = append(list, a)
	}
	for _, r := range m.servers() { // after a restart of all servers, gossip may not list them
		if !slices.ContainsFunc(members, func(member Member) bool { return member.ID == string(r.ID) }) {
			list = append(list, KeyringAnswer{Server: string(r.ID), Err: errServerDown})
		}
	}
	return list, nil
}
