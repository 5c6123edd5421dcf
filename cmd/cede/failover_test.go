package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The leader of three servers is killed repeatedly under load and restarts. Acknowledged
// writes survive, the history is linearizable, every evaluation ends, no allocation is
// placed twice, and the logs of all servers can be replayed.
func TestFailover_RepeatedLeaderKills(t *testing.T) {
	t.Parallel()
	rounds := soak.Count(2, 50)
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	p.waitLeader()
	p.startNode("n1")
	h := newHistory(t, p.clients(4))
	var took []time.Duration
	for range rounds {
		lead := p.waitLeader()
		h.waitWrites(20)
		killed := time.Now()
		lead.kill()
		took = append(took, p.timeToFirstWrite(lead, killed))
		h.waitWrites(20)
		lead.start()
		p.waitCaughtUp(lead)
	}
	h.check(p.c)
	slices.Sort(took)
	t.Logf("leader killed %d times: median time to the first write %v, maximum %v", rounds, took[len(took)/2], took[len(took)-1])
	p.checkConverged([]string{"first", "shared-0", "shared-1", "shared-2"})
	p.checkReplay()
}

// clients returns n clients, each of which uses all servers.
func (p *processPool) clients(n int) (list []*client.Client) {
	for range n {
		p.dial()
		list = append(list, p.c)
	}
	return list
}

// waitCaughtUp waits until a restarted server has applied nearly all entries of the leader,
// or leads itself.
func (p *processPool) waitCaughtUp(s *poolServer) {
	p.t.Helper()
	eventually(p.t, "the restarted server has caught up", func() bool {
		st, err := s.status()
		if err != nil || st.State != "Follower" {
			return err == nil && s.isReadyLeader()
		}
		for _, o := range p.servers {
			if other, err := o.status(); err == nil && other.State == "Leader" {
				return st.AppliedIndex+100 > other.AppliedIndex
			}
		}
		return false
	})
}

// checkReplay stops every server and verifies its log by a replay.
func (p *processPool) checkReplay() {
	p.t.Helper()
	for _, s := range p.servers {
		s.kill()
		if out, err := cede(p.t, "operator", "doctor", filepath.Join(p.dir, s.name), "--replay"); err != nil {
			p.t.Errorf("%s: %v\n%s", s.name, err, out)
		}
	}
}
