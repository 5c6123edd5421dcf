package server

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
// What entries of the log mean follows from the version of the cluster, which is part of
// the state. While servers of two releases work together it is the older one's: what
// only the newer one understands is refused. Once all servers of the cluster say that they
// understand a newer version, the leader writes it down, and from that entry on it holds
// everywhere. It never goes back.

// askVersion is how long another server may take to say what it understands.
const askVersion = 2 * time.Second

// upgrade raises the version of the cluster when that is possible.
func (t *term) upgrade(ctx context.Context) {
	for more := true; more; more = clock.Sleep(ctx, t.cfg.Clock, t.cfg.Pool.Promote) {
		t.raiseVersion(ctx)
	}
}

// raiseVersion raises the version of the cluster to what all of its servers understand.
func (t *term) raiseVersion(ctx context.Context) {
	at := t.Snapshot().Meta().Version
	if at >= t.cfg.Versions.Newest {
		return
	}
	to, lacks := t.understood(ctx)
	if to <= at {
		t.logger.DebugContext(ctx, "the version of the cluster stays", "version", at, "because", lacks)
		return
	}
	if _, err := t.writer.Commit(ctx, &replication.SetVersion{Version: to}); err != nil {
		t.logger.WarnContext(ctx, "the version of the cluster is not raised", "version", to, "err", err)
		return
	}
	t.logger.InfoContext(ctx, "version of the cluster raised", "version", to, "before", at)
}

// understood is the newest version that every server of the cluster understands; 0 where
// somebody does not say. lacks is who holds the others back.
func (t *term) understood(ctx context.Context) (version uint32, lacks string) {
	version = t.cfg.Versions.Newest
	if t.cfg.Raft == nil || t.cfg.Peers == nil {
		return version, ""
	}
	for _, r := range t.servers() {
		id := string(r.ID)
		if id == t.cfg.ID {
			continue
		}
		limited, cancel := clock.WithTimeout(ctx, t.cfg.Clock, askVersion)
		st, err := t.cfg.Peers.Status(limited, id, "")
		cancel()
		switch {
		case err != nil:
			return 0, fmt.Sprintf("server %s does not say what it understands: %v", id, err)
		case st.Newest < version:
			version, lacks = st.Newest, fmt.Sprintf("server %s understands versions %d to %d", id, st.Oldest, st.Newest)
		}
	}
	return version, lacks
}

// mayJoin is why a server may not be taken in; nil: it may.
func (t *term) mayJoin(st *rpc.Status) error {
	at := t.Snapshot().Meta().Version
	theirs := replication.Versions{Oldest: st.Oldest, Newest: st.Newest}
	switch {
	case theirs.Newest < at:
		return fmt.Errorf("it understands versions %s of the log and the cluster is at %d: install the release that the other servers run", theirs, at)
	case theirs.Oldest > at:
		return fmt.Errorf("it understands versions %s of the log and the cluster is at %d: upgrade one release at a time", theirs, at)
	}
	return nil
}

// Versions is at which version the cluster is, and what this server understands.
func (s *Server) Versions() (cluster uint32, ours replication.Versions) {
	return s.Snapshot().Meta().Version, s.cfg.Versions
}
