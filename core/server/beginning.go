package server

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
)

// How servers without a log begin a cluster together.
//
// The naive way has each of them begin one, with the servers that it happens to
// see. Two that see different ones then write different first entries under the
// same index and term, which Raft never notices. Here one server writes the
// first entry, that with the lowest id, and the others get it from the log. Before
// it does, every server on its list, itself included, must have answered that it
// has no log and promise to take part in no other list for a while. Two lists of
// which each has at least as many servers as the operator expects share one, or the
// operator started two clusters.
const (
	beginTries = 6
	// promiseHolds is how long a promise binds, beginWithin how long its taker may
	// make use of it.
	promiseHolds, beginWithin = 60 * time.Second, 20 * time.Second
)

// promise is to which list this server has promised itself.
type promise struct {
	mu    sync.Mutex
	to    string
	until time.Time
}

// give promises, unless another list has the promise; the same one has it for as
// long again.
func (p *promise) give(to string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to != "" && p.to != to && now.Before(p.until) {
		return false
	}
	p.to, p.until = to, now.Add(promiseHolds)
	return true
}

// beginCluster waits until this server has a log, and where it may begins one.
func (s *Server) beginCluster(ctx context.Context) {
	said := ""
	for !s.hasLog() {
		why, err := s.tryBegin(ctx)
		if err != nil {
			why = err.Error()
		}
		if why != said && why != "" {
			s.logger.InfoContext(ctx, "this server has no cluster yet", "reason", why)
		}
		said = why
		if !clock.Sleep(ctx, s.cfg.Clock, s.cfg.Pool.Look) {
			return
		}
	}
}

func (s *Server) hasLog() bool { return s.cfg.Raft.LastIndex() > 0 || len(s.servers()) > 0 }

// tryBegin begins a cluster if all that is needed is there, else says what is not.
func (s *Server) tryBegin(ctx context.Context) (waitsFor string, err error) {
	if s.cfg.Expect == 0 {
		return "it waits for a leader to take it in", nil
	}
	list, waitsFor := s.founders()
	if waitsFor != "" {
		return waitsFor, nil
	}
	if list[0].ID != s.cfg.ID {
		return fmt.Sprintf("server %s, which has the lowest id, is to begin it", list[0].ID), nil
	}
	from := s.cfg.Clock.Now()
	digest := digestOf(list)
	for _, m := range list {
		if err := s.askFounder(ctx, m, digest); err != nil {
			return "", err
		}
	}
	if s.cfg.Clock.Now().Sub(from) > beginWithin {
		return "the others took too long to answer", nil
	}
	var c raft.Configuration
	for _, m := range list {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Raft), Suffrage: raft.Voter})
	}
	if err := s.cfg.Raft.BootstrapCluster(c).Error(); err != nil {
		return "", fmt.Errorf("the first entry was not written: %w", err)
	}
	s.logger.InfoContext(ctx, "cluster begun", "servers", len(c.Servers))
	return "", nil
}

// founders are the servers that would begin a cluster, ascending by id.
func (s *Server) founders() (list []Member, waitsFor string) {
	for _, m := range s.Members() {
		switch {
		case m.Status != MemberAlive:
		case m.ClusterID != "":
			return nil, fmt.Sprintf("there is cluster %s, whose leader takes it in", m.ClusterID)
		case m.NonVoter || m.Expect == 0:
		case m.Expect != s.cfg.Expect:
			return nil, fmt.Sprintf("server %s expects %d servers, and this one %d: set server.bootstrap_expect to the same", m.ID, m.Expect, s.cfg.Expect)
		default:
			list = append(list, m)
		}
	}
	if len(list) < s.cfg.Expect {
		return nil, fmt.Sprintf("%d of %d servers are there", len(list), s.cfg.Expect)
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return list, ""
}

func digestOf(list []Member) string {
	h := sha256.New()
	for _, m := range list {
		_, _ = fmt.Fprintf(h, "%s %s\n", m.ID, m.Raft)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// askFounder asks a server whether it has no log, and has it promise.
func (s *Server) askFounder(ctx context.Context, m Member, digest string) error {
	var err error
	for try := range beginTries {
		if try > 0 && !clock.Sleep(ctx, s.cfg.Clock, s.cfg.Pool.Look<<min(try-1, 3)/4) {
			return ctx.Err()
		}
		st, asked := answers{s}.Status(ctx, digest)
		if m.ID != s.cfg.ID {
			st, asked = s.cfg.Peers.Status(ctx, m.ID, digest)
		}
		switch {
		case asked != nil:
			err = asked
			continue
		case st.LastIndex > 0 || st.HasPeers || st.ClusterID != "":
			return fmt.Errorf("server %s belongs to a cluster already, whose leader takes this one in", m.ID)
		case st.Expect != s.cfg.Expect:
			return fmt.Errorf("server %s expects %d servers, and this one %d", m.ID, st.Expect, s.cfg.Expect)
		case !st.Promised:
			return fmt.Errorf("server %s is about to begin a cluster with others", m.ID)
		}
		return nil
	}
	return err
}
