package membership

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/rpc"
)

// How servers without a log bootstrap a cluster together.
//
// If every server bootstrapped a cluster of the servers that it happens to see, two of
// them could write different first entries with the same index and term, which Raft never
// notices. Instead one server, that with the lowest ID, writes the first entry, and the
// others receive it. Before it does, every server on its list, itself included, must have
// answered that it has no log, and voted for this list. A vote excludes votes for other
// lists for some time. Two lists that each have at least as many servers as the operator
// expects share a server, or the operator started two clusters.
const (
	bootstrapTries = 6
	// voteHolds is how long a vote excludes other lists; bootstrapWithin is how long after
	// the first vote the entry may be written.
	voteHolds, bootstrapWithin = 60 * time.Second, 20 * time.Second
)

// bootstrapVote is the list of servers that this server voted for.
type bootstrapVote struct {
	mu    sync.Mutex
	list  string // its digest
	until time.Time
}

// grant votes for a list, and reports whether it did: not while another list has the
// vote. A repeated vote for the same list starts its time anew.
func (v *bootstrapVote) grant(list string, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.list != "" && v.list != list && now.Before(v.until) {
		return false
	}
	v.list, v.until = list, now.Add(voteHolds)
	return true
}

// bootstrap waits until this server has a log, and bootstraps a cluster if it is its
// turn.
func (m *Manager) bootstrap(ctx context.Context) {
	logged := ""
	for !m.HasLog() {
		reason, err := m.tryBootstrap(ctx)
		if err != nil {
			reason = err.Error()
		}
		if reason != logged && reason != "" {
			m.cfg.Logger.InfoContext(ctx, "server has no cluster yet", "reason", reason)
		}
		logged = reason
		if !clock.Sleep(ctx, m.cfg.Clock, m.cfg.Timing.Look) {
			return
		}
	}
}

// tryBootstrap bootstraps a cluster if all conditions are met. Otherwise it returns the
// first unmet condition.
func (m *Manager) tryBootstrap(ctx context.Context) (waitsFor string, err error) {
	if m.cfg.Expect == 0 {
		return "waiting for a leader to add this server", nil
	}
	list, waitsFor := m.bootstrapPeers()
	if waitsFor != "" {
		return waitsFor, nil
	}
	if list[0].ID != m.cfg.ServerID {
		return fmt.Sprintf("server %s has the lowest ID and bootstraps the cluster", list[0].ID), nil
	}
	from := m.cfg.Clock.Now()
	digest := peersDigest(list)
	for _, member := range list {
		if err := m.requestVote(ctx, member, digest); err != nil {
			return "", err
		}
	}
	if m.cfg.Clock.Now().Sub(from) > bootstrapWithin {
		return "the other servers took too long to answer", nil
	}
	var c raft.Configuration
	for _, member := range list {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(member.ID), Address: raft.ServerAddress(member.Raft), Suffrage: raft.Voter})
	}
	if err := m.cfg.Raft.BootstrapCluster(c).Error(); err != nil {
		return "", fmt.Errorf("write the first entry: %w", err)
	}
	m.cfg.Logger.InfoContext(ctx, "cluster bootstrapped", "servers", len(c.Servers))
	return "", nil
}

// bootstrapPeers returns the servers that would bootstrap a cluster, ascending by ID, or a
// missing condition.
func (m *Manager) bootstrapPeers() (list []Member, waitsFor string) {
	for _, member := range m.Members() {
		switch {
		case member.Status != MemberAlive:
		case member.ClusterID != "":
			return nil, fmt.Sprintf("cluster %s exists: waiting for its leader to add this server", member.ClusterID)
		case member.NonVoter || member.Expect == 0:
		case member.Expect != m.cfg.Expect:
			return nil, fmt.Sprintf("server %s expects %d servers, and this one %d: set server.bootstrap_expect to the same", member.ID, member.Expect, m.cfg.Expect)
		default:
			list = append(list, member)
		}
	}
	if len(list) < m.cfg.Expect {
		return nil, fmt.Sprintf("%d of %d servers are alive", len(list), m.cfg.Expect)
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return list, ""
}

func peersDigest(list []Member) string {
	h := sha256.New()
	for _, member := range list {
		_, _ = fmt.Fprintf(h, "%s %s\n", member.ID, member.Raft)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// requestVote returns nil if a server has no log and voted for the list with a digest.
func (m *Manager) requestVote(ctx context.Context, member Member, digest string) error {
	var lastErr error
	for try := range bootstrapTries {
		if try > 0 && !clock.Sleep(ctx, m.cfg.Clock, m.cfg.Timing.Look<<min(try-1, 3)/4) {
			return ctx.Err()
		}
		st, err := m.statusOf(ctx, member.ID, digest)
		switch {
		case err != nil:
			lastErr = err
			continue
		case st.LastIndex > 0 || st.HasPeers || st.ClusterID != "":
			return fmt.Errorf("server %s belongs to a cluster: waiting for its leader to add this server", member.ID)
		case st.Expect != m.cfg.Expect:
			return fmt.Errorf("server %s expects %d servers, and this one %d", member.ID, st.Expect, m.cfg.Expect)
		case !st.Promised:
			return fmt.Errorf("server %s voted to bootstrap a cluster of other servers", member.ID)
		}
		return nil
	}
	return lastErr
}

// statusOf returns the status of a server of the pool, this one included.
func (m *Manager) statusOf(ctx context.Context, id, bootstrap string) (*rpc.Status, error) {
	if id == m.cfg.ServerID {
		return m.Status(ctx, bootstrap)
	}
	return m.cfg.Peers.Status(ctx, id, bootstrap)
}
