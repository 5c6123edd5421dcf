package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/worker"
)

// behindLimit is how many entries a server may lack and still count as caught up.
const behindLimit = 1000

// Ready lists what this server needs to be of use, and whether it has it.
func (s *Server) Ready(context.Context) []Check {
	checks := []Check{s.hasLeader(), s.caughtUp(), s.policiesReady(), s.working()}
	if s.cfg.StorageHealthy != nil {
		c := Check{Name: "storage", OK: true}
		if err := s.cfg.StorageHealthy(); err != nil {
			c.OK, c.Detail = false, err.Error()
		}
		checks = append(checks, c)
	}
	return checks
}

func (s *Server) hasLeader() Check {
	id, addr := s.cfg.Log.Leader()
	switch {
	case id == "":
		return Check{Name: "leader", Detail: "no server leads, or none that this one can reach"}
	case id == s.cfg.ID && s.term.Load() == nil:
		return Check{Name: "leader", Detail: "this server was elected and is about to take over"}
	default:
		return Check{Name: "leader", OK: true, Detail: fmt.Sprintf("%s at %s", id, addr)}
	}
}

// caughtUp is whether what is committed, as far as this server knows, is applied.
func (s *Server) caughtUp() Check {
	c := Check{Name: "caught up", OK: true, Detail: fmt.Sprintf("index %d", s.Snapshot().Index())}
	log, ok := s.cfg.Log.(interface{ Stats() raftnode.Stats })
	if !ok {
		return c
	}
	if !s.Informed() {
		c.OK, c.Detail = false, "no leader was heard since this server began, or not all that it has is here"
		return c
	}
	stats := log.Stats()
	if lacks := int64(stats.CommitIndex) - int64(stats.AppliedIndex); lacks > behindLimit {
		c.OK, c.Detail = false, fmt.Sprintf("%d entries are committed and not applied here", lacks)
	}
	return c
}

func (s *Server) policiesReady() Check {
	ok, detail := s.policies.Ready()
	return Check{Name: "policies", OK: ok, Detail: detail}
}

// Workers is how this server's workers do.
func (s *Server) Workers() worker.Status { return s.pool.Status() }

// working says why no evaluations are worked on here. That the operator paused them is
// not held against the server; that a policy is lacking is.
func (s *Server) working() Check {
	w := s.Workers()
	c := Check{Name: "workers", OK: true, Detail: fmt.Sprintf("%d", w.Wanted)}
	switch {
	case len(w.Holds) > 0:
		c.OK, c.Detail = false, "held: "+strings.Join(w.Holds, ", ")
	case w.Wanted == 0:
		c.Detail = "paused: 0 are wanted"
	}
	return c
}
