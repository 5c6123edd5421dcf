package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The leader of three is killed again and again under load, and comes back. What was
// acknowledged is there, what people read fits one order, every evaluation ends,
// nothing is placed twice, and the logs of all servers break no rule.
func TestFailover_AgainAndAgain(t *testing.T) {
	rounds := 2
	if os.Getenv("CEDE_SOAK") != "" {
		rounds = 50
	}
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	p.leader()
	p.node("n1")
	h := newHistory(t, p.people(4))
	var took []time.Duration
	for range rounds {
		lead := p.leader()
		h.goesOn(20)
		killed := time.Now()
		lead.kill()
		took = append(took, p.firstWrite(lead, killed))
		h.goesOn(20)
		lead.start()
		p.follows(lead)
	}
	h.end(p.c)
	slices.Sort(took)
	t.Logf("leader killed %d times: the first write was committed after %v, at worst after %v", rounds, took[len(took)/2], took[len(took)-1])
	p.settled([]string{"first", "shared-0", "shared-1", "shared-2"})
	p.replayed()
}

// people is clients of all servers.
func (p *processPool) people(n int) (list []*client.Client) {
	for range n {
		p.dial()
		list = append(list, p.c)
	}
	return list
}

// follows waits until a server that came back has what the leader has.
func (p *processPool) follows(s *poolServer) {
	p.t.Helper()
	eventually(p.t, "the server is back", func() bool {
		st, err := s.status()
		if err != nil || st.State != "Follower" {
			return false
		}
		for _, o := range p.servers {
			if other, err := o.status(); err == nil && other.State == "Leader" {
				return st.AppliedIndex+100 > other.AppliedIndex
			}
		}
		return false
	})
}

// replayed stops every server and holds each log to the rules, entry by entry.
func (p *processPool) replayed() {
	p.t.Helper()
	for _, s := range p.servers {
		s.kill()
		if out, err := cede(p.t, "operator", "doctor", filepath.Join(p.dir, s.name), "--replay"); err != nil {
			p.t.Errorf("%s: %v\n%s", s.name, err, out)
		}
	}
}
