package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// network returns the network of a pool that newNetPool created.
func (p *processPool) network() *testNet { return p.net.(*testNet) }

// others returns the names of all servers except one.
func (p *processPool) others(one *poolServer) (names []string) {
	for _, s := range p.servers {
		if s != one {
			names = append(names, s.name)
		}
	}
	return names
}

// follower returns a server other than the leader.
func (p *processPool) follower(lead *poolServer) *poolServer {
	for _, s := range p.servers {
		if s != lead {
			return s
		}
	}
	return nil
}

// waitNewLeader waits until a server other than the old leader leads and returns it.
func (p *processPool) waitNewLeader(old *poolServer) (lead *poolServer) {
	p.t.Helper()
	eventually(p.t, "another server leads", func() bool {
		for _, s := range p.servers {
			if s != old && s.isReadyLeader() {
				lead = s
				return true
			}
		}
		return false
	})
	return lead
}

// isReadyLeader reports whether a server is the leader and ready to serve requests.
func (s *poolServer) isReadyLeader() bool {
	st, err := s.status()
	return err == nil && st.State == "Leader" && s.isReady()
}

// netFaults are faults of a pool in namespaces under load. Each run returns while the
// fault lasts; the caller then heals the network and waits for the pool to converge.
var netFaults = []struct {
	name string
	play func(p *processPool, h *history)
	by   string // the test that has this fault without namespaces; reduced counts leave it to that one
}{
	{"20 percent packet loss", func(p *processPool, h *history) {
		p.network().dropPercent(20)
		h.waitWrites(15)
	}, ""},
	{"leader receives no packets", func(p *processPool, h *history) {
		lead := p.waitLeader()
		p.network().dropFrom(lead.name, p.others(lead)...)
		p.waitNewLeader(lead)
		h.waitWrites(15)
	}, ""},
	// The leader also loses its lease if the other follower stalls, as on a busy machine, so
	// that one attempt of three must succeed. A partition that disrupts leaders disrupts all.
	{"follower receives no packets from leader", func(p *processPool, h *history) {
		for attempt := 1; ; attempt++ {
			lead := p.waitLeader()
			before, err := lead.status()
			must(p.t, err)
			p.network().dropFrom(p.follower(lead).name, lead.name)
			h.waitWrites(30)
			time.Sleep(3 * time.Second) // enough for several failed pre-votes
			now, err := lead.status()
			if err == nil && now.State == "Leader" && now.Term == before.Term {
				return
			}
			if attempt == 3 {
				p.t.Errorf("one-way partition of a follower disrupted the leader of term %d: now state %s in term %d, %v", before.Term, now.State, now.Term, err)
				return
			}
			p.network().heal()
			p.waitConverged()
		}
	}, ""},
	{"follower isolated", func(p *processPool, h *history) {
		lead := p.waitLeader()
		alone := p.follower(lead)
		p.network().partition([]string{alone.name}, p.others(alone))
		h.waitWrites(30)
		alone.checkIsolated()
	}, ""},
	{"leader isolated", func(p *processPool, h *history) {
		alone := p.waitLeader()
		p.network().partition([]string{alone.name}, p.others(alone))
		p.waitNewLeader(alone)
		h.waitWrites(30)
		alone.checkIsolated()
	}, ""},
	{"leader suspended for longer than its lease", func(p *processPool, h *history) {
		stopped := p.waitLeader()
		must(p.t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
		// The suspended leader receives a request that it processes when it resumes.
		result := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), testTimeout)
			defer cancel()
			_, err := stopped.c.Jobs().Register(ctx, simJob("during-suspend"), nil)
			result <- err
		}()
		now := p.waitNewLeader(stopped)
		h.waitWrites(15)
		must(p.t, stopped.cmd.Process.Signal(syscall.SIGCONT))
		if err := <-result; err == nil {
			// If the request was acknowledged, the new leader must have forwarded the write.
			if _, _, err := now.c.Jobs().Get(p.t.Context(), "during-suspend", &client.QueryOptions{Consistent: true}); err != nil {
				p.t.Errorf("suspended leader acknowledged a write that is missing: %v", err)
			}
		}
	}, "TestPool_SurvivesPausedServers"},
	{"leader killed", func(p *processPool, h *history) {
		killed := p.waitLeader()
		killed.kill()
		p.waitNewLeader(killed)
		h.waitWrites(15)
		killed.start()
	}, "TestFailover_RepeatedLeaderKills"},
}

// checkIsolated verifies the responses of a server that reaches no other one: it rejects
// writes and consistent reads, and marks stale reads as such.
func (s *poolServer) checkIsolated() {
	t := s.p.t
	t.Helper()
	eventually(t, "the isolated server has no leader", func() bool {
		st, err := s.status()
		return err == nil && st.State != "Leader" && st.LeaderID == ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if _, err := s.c.Jobs().Register(ctx, simJob("alone"), nil); !client.HasCode(err, client.CodeNoLeader) {
		t.Errorf("write on an isolated server returned %v, want %s", err, client.CodeNoLeader)
	}
	if _, _, err := s.c.Jobs().Get(ctx, "before", &client.QueryOptions{Consistent: true}); !client.HasCode(err, client.CodeNoLeader) {
		t.Errorf("consistent read on an isolated server returned %v, want %s", err, client.CodeNoLeader)
	}
	_, meta, err := s.c.Jobs().Get(ctx, "before", &client.QueryOptions{Stale: true})
	if err != nil || meta.KnownLeader {
		t.Errorf("stale read on an isolated server returned %+v, %v, want KnownLeader to be false", meta, err)
	}
}

// A pool in network namespaces survives packet loss, one-way and full partitions, and
// suspended and killed servers, all under load. It converges when a fault ends, without
// intervention.
func TestNetwork_Faults(t *testing.T) {
	t.Parallel()
	rounds := soak.Count(1, 15)
	p := newNetPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.waitLeader()
	p.startNode("n1")
	_, err := lead.c.Jobs().Register(t.Context(), simJob("before"), nil)
	must(t, err)
	h := newHistory(t, p.clients(4))
	for range rounds {
		for _, f := range netFaults {
			if f.by != "" && soak.Quick() {
				continue
			}
			start := time.Now()
			f.play(p, h)
			p.network().heal()
			healed := time.Now()
			p.waitConverged() // an election that started during the fault may end after it
			h.waitWrites(5)
			t.Logf("%s: lasted %v, converged after %v", f.name, time.Since(start).Round(time.Millisecond), time.Since(healed).Round(time.Millisecond))
			if t.Failed() {
				t.Fatal(f.name)
			}
		}
	}
	h.check(p.c)
	p.checkConverged([]string{"before", "shared-0", "shared-1", "shared-2"})
	p.checkReplay()
}

// lag returns the number of entries that a server has not applied but the leader has. It is
// 1<<20 if the server does not follow this leader.
func (s *poolServer) lag(lead *poolServer) uint64 {
	own, err := s.status()
	theirs, failed := lead.status()
	if err != nil || failed != nil || own.State != "Follower" || own.LeaderID != theirs.ServerID {
		return 1 << 20
	}
	return theirs.AppliedIndex - min(own.AppliedIndex, theirs.AppliedIndex)
}

// An agent switches to another server when its own fails. Allocations of a disconnected
// node are replaced when the grace period has passed, and not before. When the node
// reconnects, the replaced allocations are stopped, and those of a job that does not
// replace on disconnect continue.
func TestNetwork_Agents(t *testing.T) {
	t.Parallel()
	p := newNetPool(t)
	p.ttl, p.grace = time.Second, 4*time.Second
	for _, s := range p.servers {
		s.start()
	}
	p.waitLeader()
	p.startNode("n1")
	_, err := p.c.Jobs().Register(t.Context(), simJob("work"), nil)
	must(t, err)
	first := p.waitRunningOn("n1")
	patient := simJob("patient")
	patient.TaskGroups[0].Count, patient.TaskGroups[0].Disconnect = new(1), &client.DisconnectStrategy{Replace: new(false)}
	_, err = p.c.Jobs().Register(t.Context(), patient, nil)
	must(t, err)
	kept := p.waitSingle("patient", "running")
	p.startNode("n2")

	// Kill the servers in turn, so that the current servers of the agents are among them.
	// Without CEDE_SOAK kill only the first one, which is first in every list of servers.
	targets := p.servers
	if !soak.Full() {
		targets = targets[:1]
	}
	for _, s := range targets {
		s.kill()
		time.Sleep(7 * time.Second) // longer than heartbeat TTL and grace period
		if now := p.waitRunningOn("n1"); !slices.Equal(now, first) {
			t.Errorf("allocations were replaced when %s failed", s.name)
		}
		s.start()
		p.waitLeader()
		p.waitCaughtUp(s)
	}

	servers := []string{"s1", "s2", "s3"}
	disconnected := time.Now()
	p.network().partition([]string{"n1"}, servers)
	time.Sleep(2 * time.Second) // less than heartbeat TTL and grace period
	p.network().heal()
	duration := time.Since(disconnected)
	time.Sleep(4 * time.Second)
	if duration > 3*time.Second {
		t.Logf("the node was disconnected for %v because the machine is slow: the check is skipped", duration)
		first = p.waitRunningOn("n1")
	} else if now := p.waitRunningOn("n1"); !slices.Equal(now, first) {
		t.Error("allocations were replaced although their node reconnected in time")
	}

	p.network().partition([]string{"n1"}, servers)
	second := p.waitRunningOn("n2")
	if now := p.waitSingle("patient", "unknown"); now != kept {
		t.Errorf("allocation %s replaces %s, which must stay on its disconnected node", now, kept)
	}
	p.network().heal()
	if now := p.waitSingle("patient", "running"); now != kept {
		t.Errorf("allocation %s runs after the reconnect, want %s", now, kept)
	}
	eventually(t, "the replaced allocations are stopped", func() bool {
		list, _, err := p.c.Jobs().Allocations(t.Context(), "work", nil)
		if err != nil {
			return false
		}
		for _, a := range list {
			if slices.Contains(first, a.ID) && (a.DesiredStatus == "run" || a.ClientStatus == "running") {
				return false
			}
		}
		return true
	})
	if now := p.waitRunningOn("n2"); !slices.Equal(now, second) {
		t.Error("allocations were replaced when a node reconnected")
	}
	p.checkConverged([]string{"work"})
	p.checkReplay()
}

// waitSingle waits until a job has exactly one allocation, with the given client status,
// and returns its ID.
func (p *processPool) waitSingle(job, status string) (id string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("the only allocation of %s is %s", job, status), func() bool {
		list, _, err := p.c.Jobs().Allocations(p.t.Context(), job, nil)
		if err != nil || len(list) != 1 || list[0].ClientStatus != status {
			return false
		}
		id = list[0].ID
		return true
	})
	return id
}

// waitRunningOn waits until both allocations of the job "work" run on a node and returns
// their IDs.
func (p *processPool) waitRunningOn(node string) (ids []string) {
	p.t.Helper()
	const job = "work"
	eventually(p.t, fmt.Sprintf("%s runs on %s", job, node), func() bool {
		ids = nil
		list, _, err := p.c.Jobs().Allocations(p.t.Context(), job, nil)
		if err != nil {
			return false
		}
		for _, a := range list {
			if a.DesiredStatus == "run" && a.ClientStatus == "running" && a.NodeName == node {
				ids = append(ids, a.ID)
			}
		}
		return len(ids) == 2
	})
	slices.Sort(ids)
	return ids
}
