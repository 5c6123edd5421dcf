package server

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"github.com/cede-scheduler/cede/core/replication/raftnode"
)

// maxBehind is how many entries a server may lack and still count as well.
const maxBehind = 500

// pilot tells autopilot of the pool. Autopilot makes voters of newcomers that do
// well for a while, and removes servers that are gone for long.
type pilot struct {
	t *term

	mu sync.Mutex
	// missed is since when servers of the cluster are missed that the pool does not
	// know: after a restart of all, gossip knows nobody.
	missed    map[raft.ServerID]time.Time
	tolerates int // losses, as of the last look
}

var _ autopilot.ApplicationIntegration = (*pilot)(nil)

// promote runs autopilot for the term.
func (t *term) promote(ctx context.Context) {
	if t.cfg.Membership == nil || t.cfg.Raft == nil {
		return
	}
	p := &pilot{t: t, missed: map[raft.ServerID]time.Time{}}
	a := autopilot.New(t.cfg.Raft, p,
		autopilot.WithLogger(raftnode.NewLogger(t.logger)), autopilot.WithPromoter(promoter{&autopilot.StablePromoter{}}),
		autopilot.WithUpdateInterval(t.cfg.Pool.Health), autopilot.WithReconcileInterval(t.cfg.Pool.Promote))
	a.Start(ctx)
	<-ctx.Done()
	<-a.Stop()
}

// promoter leaves out who never votes.
type promoter struct{ *autopilot.StablePromoter }

const metaNonVoter = "non-voter"

// CalculatePromotionsAndDemotions says who becomes a voter.
func (p promoter) CalculatePromotionsAndDemotions(c *autopilot.Config, s *autopilot.State) autopilot.RaftChanges {
	changes := p.StablePromoter.CalculatePromotionsAndDemotions(c, s)
	changes.Promotions = slices.DeleteFunc(changes.Promotions, func(id raft.ServerID) bool {
		server := s.Servers[id]
		return server != nil && server.Server.Meta[metaNonVoter] != ""
	})
	return changes
}

// AutopilotConfig says how many voters are kept whatever happens.
func (p *pilot) AutopilotConfig() *autopilot.Config {
	expect := p.t.cfg.Expect
	for _, m := range p.t.Members() {
		expect = max(expect, m.Expect)
	}
	if expect == 0 {
		expect = len(p.t.voters())
	}
	return &autopilot.Config{
		CleanupDeadServers: true, LastContactThreshold: 2 * p.t.cfg.Pool.Health, MaxTrailingLogs: maxBehind,
		MinQuorum: uint(expect/2 + 1), ServerStabilizationTime: p.t.cfg.Pool.Stable,
	}
}

// NotifyState is told how the servers do.
func (p *pilot) NotifyState(s *autopilot.State) {
	p.mu.Lock()
	changed := p.tolerates != s.FailureTolerance
	p.tolerates = s.FailureTolerance
	p.mu.Unlock()
	if changed {
		p.t.logger.Info("servers that may be lost", "count", s.FailureTolerance, "voters", len(s.Voters), "healthy", s.Healthy)
	}
}

// FetchServerStats asks servers how far they are. Who does not answer in time is
// left out, and counts as unwell.
func (p *pilot) FetchServerStats(ctx context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	limited, cancel := context.WithTimeout(ctx, p.t.cfg.Pool.Health)
	defer cancel()
	var mu sync.Mutex
	var asked sync.WaitGroup
	stats := map[raft.ServerID]*autopilot.ServerStats{}
	for id := range servers {
		asked.Go(func() {
			st, err := answers{p.t.Server}.Status(limited, "")
			if string(id) != p.t.cfg.ID {
				st, err = p.t.cfg.Peers.Status(limited, string(id), "")
			}
			if err != nil || st.LastContact < 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			stats[id] = &autopilot.ServerStats{LastContact: st.LastContact, LastTerm: st.LastTerm, LastIndex: st.LastIndex}
		})
	}
	asked.Wait()
	return stats
}

// KnownServers is the pool, and who belongs to the cluster without being in it. That
// somebody is gone is said only once it has been for longer than a restart takes: a
// server that restarts keeps its place.
func (p *pilot) KnownServers() map[raft.ServerID]*autopilot.Server {
	now := p.t.cfg.Clock.Now()
	list := map[raft.ServerID]*autopilot.Server{}
	for _, m := range p.t.Members() {
		s := &autopilot.Server{
			ID: raft.ServerID(m.ID), Name: m.ID, Address: raft.ServerAddress(m.Raft), Version: m.Build, NodeType: autopilot.NodeVoter,
			RaftVersion: int(raft.ProtocolVersionMax), NodeStatus: autopilot.NodeAlive, IsLeader: m.ID == p.t.cfg.ID, Meta: map[string]string{},
		}
		switch {
		case m.Status == MemberLeft:
			s.NodeStatus = autopilot.NodeLeft
		case m.Status == MemberFailed && now.Sub(m.Since) >= p.t.cfg.Pool.Dead:
			s.NodeStatus = autopilot.NodeFailed
		}
		if m.NonVoter {
			s.Meta[metaNonVoter] = strconv.FormatBool(true)
		}
		list[s.ID] = s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.t.servers() {
		if list[r.ID] != nil {
			delete(p.missed, r.ID)
			continue
		}
		since, missed := p.missed[r.ID]
		if !missed {
			since, p.missed[r.ID] = now, now
		}
		if now.Sub(since) >= p.t.cfg.Pool.Dead {
			continue // autopilot calls it stale
		}
		list[r.ID] = &autopilot.Server{
			ID: r.ID, Name: string(r.ID), Address: r.Address, NodeType: autopilot.NodeVoter,
			RaftVersion: int(raft.ProtocolVersionMax), NodeStatus: autopilot.NodeAlive, Meta: map[string]string{},
		}
	}
	return list
}

// RemoveFailedServer removes a server that has been gone for long.
func (p *pilot) RemoveFailedServer(s *autopilot.Server) {
	p.t.group.Go(func() {
		if err := p.t.remove(string(s.ID), "it has been gone for long"); err != nil {
			p.t.logger.Warn("a server that is gone is not removed", "server", string(s.ID), "err", err)
		}
	})
}
