package membership

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"

	"github.com/cede-scheduler/cede/core/replication/raftnode"
)

// maxTrailingLogs is how many entries a healthy server may be behind.
const maxTrailingLogs = 500

// metaNonVoter marks members that never vote.
const metaNonVoter = "non-voter"

// autopilotDelegate connects autopilot to the pool. Autopilot promotes new servers that
// are stable to voters, and removes servers that have failed for long.
type autopilotDelegate struct {
	m     *Manager
	group sync.WaitGroup // of removals

	mu sync.Mutex
	// missing holds since when servers of the cluster are missing from gossip: after a
	// restart of all servers, gossip lists none of the others.
	missing   map[raft.ServerID]time.Time
	tolerance int // failures that the cluster tolerates, at the last update
}

var _ autopilot.ApplicationIntegration = (*autopilotDelegate)(nil)

// serverHealth provides the health of servers while this server leads.
type serverHealth struct {
	running atomic.Pointer[autopilot.Autopilot] // nil: this server does not lead, or has no pool
}

// Health is the health of a server, as the leader observes it.
type Health struct {
	Healthy             bool
	LastContact         time.Duration // since its last contact with the leader
	LastTerm, LastIndex uint64
	StableSince         time.Time // since when Healthy has its value
}

// ServerHealth returns the health of the servers by ID. It returns nil if this server
// does not lead, or has no pool.
func (h *serverHealth) ServerHealth() map[string]Health {
	a := h.running.Load()
	if a == nil {
		return nil
	}
	all := map[string]Health{}
	for id, s := range a.GetState().Servers {
		all[string(id)] = Health{
			Healthy: s.Health.Healthy, StableSince: s.Health.StableSince,
			LastContact: s.Stats.LastContact, LastTerm: s.Stats.LastTerm, LastIndex: s.Stats.LastIndex,
		}
	}
	return all
}

// Autopilot runs autopilot on the leader until ctx ends.
func (m *Manager) Autopilot(ctx context.Context) {
	if m.cfg.Gossip == nil || m.cfg.Raft == nil {
		return
	}
	d := &autopilotDelegate{m: m, missing: map[raft.ServerID]time.Time{}}
	a := autopilot.New(m.cfg.Raft, d,
		autopilot.WithLogger(raftnode.NewLogger(m.cfg.Logger)), autopilot.WithPromoter(promoter{&autopilot.StablePromoter{}}),
		autopilot.WithUpdateInterval(m.cfg.Timing.Health), autopilot.WithReconcileInterval(m.cfg.Timing.Promote))
	a.Start(ctx)
	m.running.Store(a)
	<-ctx.Done()
	m.running.Store(nil)
	<-a.Stop()
	d.group.Wait()
}

// promoter is autopilot's promoter without members that never vote.
type promoter struct{ *autopilot.StablePromoter }

// CalculatePromotionsAndDemotions implements autopilot.Promoter.
func (p promoter) CalculatePromotionsAndDemotions(c *autopilot.Config, s *autopilot.State) autopilot.RaftChanges {
	changes := p.StablePromoter.CalculatePromotionsAndDemotions(c, s)
	changes.Promotions = slices.DeleteFunc(changes.Promotions, func(id raft.ServerID) bool {
		server := s.Servers[id]
		return server != nil && server.Server.Meta[metaNonVoter] != ""
	})
	return changes
}

// AutopilotConfig implements autopilot.ApplicationIntegration. A majority of the expected
// servers is never removed.
func (d *autopilotDelegate) AutopilotConfig() *autopilot.Config {
	expect := d.m.cfg.Expect
	for _, member := range d.m.Members() {
		expect = max(expect, member.Expect)
	}
	if expect == 0 {
		expect = len(d.m.Voters())
	}
	return &autopilot.Config{
		CleanupDeadServers: true, LastContactThreshold: 2 * d.m.cfg.Timing.Health, MaxTrailingLogs: maxTrailingLogs,
		MinQuorum: uint(expect/2 + 1), ServerStabilizationTime: d.m.cfg.Timing.Stable,
	}
}

// NotifyState implements autopilot.ApplicationIntegration. It logs changes of the failure
// tolerance.
func (d *autopilotDelegate) NotifyState(s *autopilot.State) {
	d.mu.Lock()
	changed := d.tolerance != s.FailureTolerance
	d.tolerance = s.FailureTolerance
	d.mu.Unlock()
	if changed {
		d.m.cfg.Logger.Info("failure tolerance changed", "count", s.FailureTolerance, "voters", len(s.Voters), "healthy", s.Healthy)
	}
}

// FetchServerStats implements autopilot.ApplicationIntegration. A server that does not
// answer in time is omitted, and counts as unhealthy.
func (d *autopilotDelegate) FetchServerStats(ctx context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	limited, cancel := context.WithTimeout(ctx, d.m.cfg.Timing.Health)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	stats := map[raft.ServerID]*autopilot.ServerStats{}
	for id := range servers {
		group.Go(func() {
			st, err := d.m.statusOf(limited, string(id), "")
			if err != nil || st.LastContact < 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			stats[id] = &autopilot.ServerStats{LastContact: st.LastContact, LastTerm: st.LastTerm, LastIndex: st.LastIndex}
		})
	}
	group.Wait()
	return stats
}

// KnownServers implements autopilot.ApplicationIntegration. It returns the members of the
// pool, and the servers of the cluster that gossip does not list. A server counts as failed
// only after it has been gone for longer than a restart takes.
func (d *autopilotDelegate) KnownServers() map[raft.ServerID]*autopilot.Server {
	now := d.m.cfg.Clock.Now()
	list := map[raft.ServerID]*autopilot.Server{}
	for _, member := range d.m.Members() {
		s := &autopilot.Server{
			ID: raft.ServerID(member.ID), Name: member.ID, Address: raft.ServerAddress(member.Raft), Version: member.Build, NodeType: autopilot.NodeVoter,
			RaftVersion: int(raft.ProtocolVersionMax), NodeStatus: autopilot.NodeAlive, IsLeader: member.ID == d.m.cfg.ServerID, Meta: map[string]string{},
		}
		switch {
		case member.Status == MemberLeft:
			s.NodeStatus = autopilot.NodeLeft
		case member.Status == MemberFailed && now.Sub(member.Since) >= d.m.cfg.Timing.Dead:
			s.NodeStatus = autopilot.NodeFailed
		}
		if member.NonVoter {
			s.Meta[metaNonVoter] = strconv.FormatBool(true)
		}
		list[s.ID] = s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.m.servers() {
		if list[r.ID] != nil {
			delete(d.missing, r.ID)
			continue
		}
		since, known := d.missing[r.ID]
		if !known {
			since, d.missing[r.ID] = now, now
		}
		if now.Sub(since) >= d.m.cfg.Timing.Dead {
			continue // autopilot treats a server that is not listed as stale
		}
		list[r.ID] = &autopilot.Server{
			ID: r.ID, Name: string(r.ID), Address: r.Address, NodeType: autopilot.NodeVoter,
			RaftVersion: int(raft.ProtocolVersionMax), NodeStatus: autopilot.NodeAlive, Meta: map[string]string{},
		}
	}
	return list
}

// RemoveFailedServer implements autopilot.ApplicationIntegration.
func (d *autopilotDelegate) RemoveFailedServer(s *autopilot.Server) {
	d.group.Go(func() {
		if err := d.m.remove(string(s.ID), "failed for too long"); err != nil {
			d.m.cfg.Logger.Warn("failed to remove server", "server", string(s.ID), "err", err)
		}
	})
}
