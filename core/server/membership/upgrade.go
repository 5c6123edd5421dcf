package membership

import (
	"context"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/rpc"
)

// How servers are upgraded one after the other.
//
// The meaning of log entries depends on the version of the cluster, which is part of the
// state. While servers of two releases run, it is that of the older one, and commands that
// only the newer one understands are refused. Once all servers of the cluster understand a
// newer version, the leader writes it into the log, and it is effective from that entry on.
// It never decreases.

// versionTimeout is how long a server may take to report the versions that it
// understands.
const versionTimeout = 2 * time.Second

// Upgrade raises the version of the cluster when that is possible, on the leader, until
// ctx ends.
func (m *Manager) Upgrade(ctx context.Context) {
	for more := true; more; more = clock.Sleep(ctx, m.cfg.Clock, m.cfg.Timing.Promote) {
		m.raiseVersion(ctx)
	}
}

// raiseVersion raises the version of the cluster to the newest one that all servers
// understand.
func (m *Manager) raiseVersion(ctx context.Context) {
	current := m.cfg.Writer.Snapshot().Meta().Version
	if current >= m.cfg.Versions.Newest {
		return
	}
	to, limitedBy := m.CommonVersion(ctx)
	if to <= current {
		m.cfg.Logger.DebugContext(ctx, "cluster version not raised", "version", current, "because", limitedBy)
		return
	}
	if _, err := m.cfg.Writer.Commit(ctx, &replication.SetVersion{Version: to}); err != nil {
		m.cfg.Logger.WarnContext(ctx, "failed to raise the cluster version", "version", to, "err", err)
		return
	}
	m.cfg.Logger.InfoContext(ctx, "cluster version raised", "version", to, "before", current)
}

// CommonVersion returns the newest version that every server of the cluster understands,
// or 0 if a server does not answer, and the reason for which it is not newer.
func (m *Manager) CommonVersion(ctx context.Context) (version uint32, limitedBy string) {
	version = m.cfg.Versions.Newest
	if m.cfg.Raft == nil || m.cfg.Peers == nil {
		return version, ""
	}
	for _, r := range m.servers() {
		id := string(r.ID)
		if id == m.cfg.ServerID {
			continue
		}
		limited, cancel := clock.WithTimeout(ctx, m.cfg.Clock, versionTimeout)
		st, err := m.cfg.Peers.Status(limited, id, "")
		cancel()
		switch {
		case err != nil:
			return 0, fmt.Sprintf("server %s did not report its versions: %v", id, err)
		case st.Newest < version:
			version, limitedBy = st.Newest, fmt.Sprintf("server %s understands versions %d to %d", id, st.Oldest, st.Newest)
		}
	}
	return version, limitedBy
}

// CheckVersions returns an error if a server does not understand the version of the
// cluster.
func (m *Manager) CheckVersions(st *rpc.Status) error {
	current := m.cfg.Writer.Snapshot().Meta().Version
	theirs := replication.Versions{Oldest: st.Oldest, Newest: st.Newest}
	switch {
	case theirs.Newest < current:
		return fmt.Errorf("server understands log versions %s and the cluster is at %d: install the release that the other servers run", theirs, current)
	case theirs.Oldest > current:
		return fmt.Errorf("server understands log versions %s and the cluster is at %d: upgrade one release at a time", theirs, current)
	}
	return nil
}
