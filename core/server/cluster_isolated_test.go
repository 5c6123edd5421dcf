package server

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/replication"
)

// isolationTimeout is the time after which an isolated server reports that there is no
// leader: the election timeout plus its delay as a candidate.
const isolationTimeout = 2500 * time.Millisecond

// checkIsolatedReads checks the responses of a server that is cut off for a while to a
// local client: stale reads must be marked as such, and everything else is refused.
func (c *simCluster) checkIsolatedReads(s *simServer) {
	r, since := s.run.Load(), c.net.isolatedSince(s.id)
	if r == nil || !r.isolatedSince(since) {
		return
	}
	known, contact := r.leaderContact()
	ctx, cancel := context.WithTimeout(c.ctx, time.Second)
	defer cancel()
	before := r.server.Snapshot().Index()
	_, consistent := r.server.Consistent(ctx)
	_, written := r.server.SetConfig(ctx, simConfig(""), nil)
	after := r.server.Snapshot().Index()
	if c.net.isolatedSince(s.id) != since || !r.isolatedSince(since) || s.run.Load() != r {
		return // it was not isolated all the time
	}
	c.seen.isolated.Add(1)
	if known {
		c.t.Errorf("server %s is isolated since %v, but reports a leader", s.id, since)
	}
	if least := time.Since(since) - time.Second; contact >= 0 && contact < least {
		c.t.Errorf("server %s reports leader contact %v ago, but is isolated since %v", s.id, contact, since)
	}
	if consistent == nil || written == nil {
		c.t.Errorf("isolated server %s: consistent read returns %v, write returns %v", s.id, consistent, written)
	}
	if after != before {
		c.t.Errorf("isolated server %s: state advanced from index %d to %d", s.id, before, after)
	}
}

// isolatedSince reports whether a server has been isolated since then and was otherwise
// healthy: a hanging disk delays the detection.
func (r *simRun) isolatedSince(since time.Time) bool {
	return !since.IsZero() && time.Since(since) >= isolationTimeout && r.of.since().Before(since) && r.disk.healthySince(since)
}

// leaderContact returns what a stale read reports: whether a leader is known, and the time
// since the last contact; negative: never.
func (r *simRun) leaderContact() (known bool, ago time.Duration) {
	if r.node.IsLeader() {
		return true, 0
	}
	id, _ := r.node.Leader()
	ago, err := time.ParseDuration(r.node.Stats().LastContact)
	if err != nil { // never
		ago = -1
	}
	return id != "", ago
}

// A leader that is cut off continues to serve stale reads and reports their age. The other
// servers continue without it, and when the connection is restored it catches up by itself.
func TestCluster_IsolatedServerServesStaleReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runSim(t, 1, simSize{nodes: 2}, replication.Versions{}, func(c *simCluster) {
			c.addAgents()
			client := newSimClient(c, 0)
			client.write("low", "before")
			var isolated *simServer
			for isolated == nil {
				time.Sleep(100 * time.Millisecond)
				for _, s := range c.servers {
					if s.run.Load().node.IsLeader() {
						isolated = s
					}
				}
			}
			over := c.partition(isolated, true, true)
			time.Sleep(isolationTimeout)
			c.checkIsolatedReads(isolated)
			r := isolated.run.Load()
			_, first := r.leaderContact()
			client.write("low", "after")
			time.Sleep(5 * time.Second)
			c.checkIsolatedReads(isolated)
			if _, later := r.leaderContact(); later < first+5*time.Second || first < time.Second {
				t.Errorf("leader contact is %v ago, and at least five seconds later %v ago", first, later)
			}
			if n := c.seen.isolated.Load(); n != 2 {
				t.Errorf("%d reads while isolated, want 2", n)
			}
			if value := valueOf(r.server.Snapshot(), "low"); value != "before" {
				t.Errorf("isolated server reads %q", value)
			}
			over()
			time.Sleep(5 * time.Second)
			known, ago := r.leaderContact()
			if value := valueOf(r.server.Snapshot(), "low"); value != "after" || !known || ago > time.Second {
				t.Errorf("reconnected server reads %q; leader known: %t, last contact %v ago", value, known, ago)
			}
		})
	})
}
