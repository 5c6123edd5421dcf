package server

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/worker"
)

const (
	// maxLag is how many committed entries a server may lack and still count as caught up.
	maxLag = 1000
	// catchUpInterval is the interval at which a server that starts checks whether it has
	// caught up.
	catchUpInterval = 100 * time.Millisecond
)

// Check is one condition for a server to be ready.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// Reloadable is configuration that may change while a server runs; nil leaves a value
// unchanged.
type Reloadable struct {
	Workers *int // evaluations processed at a time; 0: none
}

// Ready returns the conditions for this server to be ready, and whether each is met.
func (s *Server) Ready(context.Context) []Check {
	checks := []Check{s.checkLeaderKnown(), s.checkCaughtUp(), s.checkPolicies(), s.checkWorkers()}
	if s.cfg.StorageHealthy != nil {
		c := Check{Name: "storage", OK: true}
		if err := s.cfg.StorageHealthy(); err != nil {
			c.OK, c.Detail = false, err.Error()
		}
		checks = append(checks, c)
	}
	if s.cfg.SchedulingDelay != nil {
		// A delayed server still answers, so the check does not fail.
		delay, problem := s.cfg.SchedulingDelay()
		checks = append(checks, Check{Name: "scheduling", OK: true, Detail: cmp.Or(problem, fmt.Sprintf("delay of %v at most", delay.Round(time.Millisecond)))})
	}
	return checks
}

func (s *Server) checkLeaderKnown() Check {
	id, addr := s.cfg.Log.Leader()
	switch {
	case id == "":
		return Check{Name: "leader", Detail: noLeaderReason(&s.cfg.HealthChecks)}
	case id == s.cfg.ID && s.term.Load() == nil:
		return Check{Name: "leader", Detail: "this server was elected and is establishing leadership"}
	default:
		return Check{Name: "leader", OK: true, Detail: fmt.Sprintf("%s at %s", id, addr)}
	}
}

// noLeaderReason returns why no leader is known: the fault of this server if it has one.
func noLeaderReason(h *HealthChecks) string {
	if h.StorageHealthy != nil {
		if err := h.StorageHealthy(); err != nil {
			return "no cluster leader, and this server cannot lead: " + err.Error()
		}
	}
	text := "no cluster leader, or none that this server can reach"
	if h.SchedulingDelay != nil {
		if _, problem := h.SchedulingDelay(); problem != "" {
			text += "; " + problem
		}
	}
	return text
}

// checkCaughtUp returns a failed check if entries up to the known commit index are not
// applied.
func (s *Server) checkCaughtUp() Check {
	c := Check{Name: "caught up", OK: true, Detail: fmt.Sprintf("index %d", s.Snapshot().Index())}
	log, ok := s.cfg.Log.(interface{ Stats() raftnode.Stats })
	if !ok {
		return c
	}
	if !s.CaughtUp() {
		c.OK, c.Detail = false, "no contact with a leader since this server started, or not all of its entries are applied here"
		return c
	}
	stats := log.Stats()
	if lag := int64(stats.CommitIndex) - int64(stats.AppliedIndex); lag > maxLag {
		c.OK, c.Detail = false, fmt.Sprintf("%d committed entries are not applied here", lag)
	}
	return c
}

func (s *Server) checkPolicies() Check {
	ok, detail := s.policies.Ready()
	return Check{Name: "policies", OK: ok, Detail: detail}
}

// Workers returns the status of this server's workers.
func (s *Server) Workers() worker.Status { return s.pool.Status() }

// checkWorkers reports the number of workers. It succeeds also if the operator paused them.
func (s *Server) checkWorkers() Check {
	w := s.Workers()
	c := Check{Name: "workers", OK: true, Detail: strconv.Itoa(w.Wanted)}
	if w.Wanted == 0 {
		c.Detail = "paused: 0 are configured"
	}
	return c
}

// CaughtUp reports whether this server's state has, at some time since it started,
// contained everything that the leader had. Raft applies the entries on the disk only once
// a leader reports how many of them are committed: before that, a server would answer that
// there are no jobs, and that every token is unknown.
func (s *Server) CaughtUp() bool { return s.caughtUp.Load() }

// watchCatchUp sets caughtUp once this server has caught up. A leader has when it has
// established leadership.
func (s *Server) watchCatchUp(ctx context.Context) {
	log, ok := s.cfg.Log.(interface{ Stats() raftnode.Stats })
	if !ok {
		s.caughtUp.Store(true)
	}
	for target := uint64(0); !s.caughtUp.Load() && clock.Sleep(ctx, s.cfg.Clock, catchUpInterval); {
		newest := s.leaderLastIndex(ctx)
		if newest == 0 {
			continue
		}
		if target == 0 || newest < target { // uncommitted entries of a leader may be discarded
			target = newest
		}
		if log.Stats().AppliedIndex >= target {
			s.caughtUp.Store(true)
		}
	}
}

// leaderLastIndex returns the index of the last entry of another server that leads, or 0 if
// no server confirms that it leads.
func (s *Server) leaderLastIndex(ctx context.Context) uint64 {
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
