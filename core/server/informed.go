package server

import (
	"context"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
)

// askInformed is how often a server that began looks whether it is informed.
const askInformed = 100 * time.Millisecond

// Informed is whether this server's state was, at some moment since it began, all that
// a leader had. Raft applies what the log on the disk holds once a leader says how much
// of it is committed: before that a server would answer that there are no jobs, and
// that nobody's token is known.
func (s *Server) Informed() bool { return s.informed.Load() }

// inform finds out when this server is informed. The leader is as its term begins.
func (s *Server) inform(ctx context.Context) {
	log, tells := s.cfg.Log.(interface{ Stats() raftnode.Stats })
	if !tells {
		s.informed.Store(true)
	}
	for least := uint64(0); !s.informed.Load() && clock.Sleep(ctx, s.cfg.Clock, askInformed); {
		newest := s.leaderHas(ctx)
		if newest == 0 {
			continue
		}
		if least == 0 || newest < least { // some of what a leader has may never be committed
			least = newest
		}
		if log.Stats().AppliedIndex >= least {
			s.informed.Store(true)
		}
	}
}

// leaderHas is the index of the last entry in the log of another server that leads; 0
// where none is known that says that it does.
func (s *Server) leaderHas(ctx context.Context) uint64 {
	id, _ := s.cfg.Log.Leader()
	if id == "" || id == s.cfg.ID || s.cfg.Peers == nil {
		return 0
	}
	st, err := s.cfg.Peers.Status(ctx, id, "")
	if err != nil || st.LeaderID != id {
		return 0
	}
	return st.LastIndex
}
