package membership

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/clock"
)

// firstReconcileRetry is the wait after a failed reconciliation; it doubles with each
// failure in a row. A server answers a moment after it appears in gossip.
const firstReconcileRetry = time.Second

// Reconcile makes Raft's configuration follow the members of the pool, on the leader,
// until ctx ends. Notifications of gossip may be lost, so it also runs periodically.
func (m *Manager) Reconcile(ctx context.Context) {
	if m.cfg.Gossip == nil || m.cfg.Raft == nil {
		return
	}
	var retry time.Duration // 0: the last reconciliation succeeded
	for {
		wait := m.cfg.Timing.Reconcile
		if m.reconcile(ctx) {
			retry = 0
		} else {
			retry = min(max(2*retry, firstReconcileRetry), wait)
			wait = retry
		}
		limited, cancel := clock.WithTimeout(ctx, m.cfg.Clock, wait)
		select {
		case <-m.cfg.Gossip.Changed():
		case <-limited.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
	}
}

// reconcile adds and removes servers, and reports whether all changes succeeded.
func (m *Manager) reconcile(ctx context.Context) bool {
	ok := true
	for _, member := range m.Members() {
		if ctx.Err() != nil {
			return false
		}
		var err error
		switch member.Status {
		case MemberAlive:
			err = m.addServer(ctx, member)
		case MemberLeft:
			if _, ok := m.RaftServer(member.ID); ok && member.ID != m.cfg.ServerID {
				err = m.remove(member.ID, "left")
			}
		case MemberFailed: // it may be restarting; autopilot removes it if it does not come back
		}
		if err != nil {
			m.cfg.Logger.WarnContext(ctx, "failed to reconcile member", "server", member.ID, "status", member.Status.String(), "err", err)
			ok = false
		}
	}
	return ok
}

// addServer adds an alive member to the cluster as a nonvoter, or updates its address.
func (m *Manager) addServer(ctx context.Context, member Member) error {
	server, added := m.RaftServer(member.ID)
	if added && string(server.Address) == member.Raft || member.Raft == "" {
		return nil
	}
	cluster := m.clusterID()
	if member.ClusterID != "" && member.ClusterID != cluster {
		return fmt.Errorf("server belongs to cluster %s", member.ClusterID)
	}
	if member.ID != m.cfg.ServerID {
		st, err := m.cfg.Peers.Status(ctx, member.ID, "")
		if err != nil {
			return err
		}
		if !added && member.ClusterID == "" && st.ClusterID == "" && st.LastIndex > 0 {
			// Raft would replace its log with ours. If a server was killed in the first
			// moments of its cluster, it has no cluster ID before it leads again.
			return fmt.Errorf("server has %d log entries but no cluster ID: wipe its data directory if nothing in it is needed", st.LastIndex)
		}
		if st.ClusterID != "" && st.ClusterID != cluster {
			return fmt.Errorf("server belongs to cluster %s", st.ClusterID)
		}
		if err := m.CheckVersions(st); err != nil {
			return err
		}
	}
	if err := m.releaseAddress(member); err != nil {
		return err
	}
	id, address := raft.ServerID(member.ID), raft.ServerAddress(member.Raft)
	if added && server.Suffrage == raft.Voter {
		m.cfg.Logger.InfoContext(ctx, "server address changed", "server", member.ID, "address", member.Raft)
		return m.cfg.Raft.AddVoter(id, address, 0, changeTimeout).Error()
	}
	m.cfg.Logger.InfoContext(ctx, "server added", "server", member.ID, "address", member.Raft)
	return m.cfg.Raft.AddNonvoter(id, address, 0, changeTimeout).Error()
}

// releaseAddress removes another server if it is gone and the member has its address: if a
// server restarts with an empty disk, it has a new ID.
func (m *Manager) releaseAddress(member Member) error {
	for _, r := range m.servers() {
		if string(r.Address) != member.Raft || string(r.ID) == member.ID {
			continue
		}
		if other, known := m.Member(string(r.ID)); known && other.Status == MemberAlive && other.Raft == member.Raft {
			return fmt.Errorf("server %s has address %s as well", r.ID, member.Raft)
		} else if known && other.Status == MemberAlive {
			continue // its own address has changed and is updated in its turn
		}
		if err := m.remove(string(r.ID), "its address now belongs to server "+member.ID); err != nil {
			return err
		}
	}
	return nil
}
