package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// An operator removes a server that will not come back, and no other.
func TestOperatorRaftRemove_RemovesWhoIsGone(t *testing.T) {
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
	eventually(t, "three vote", func() bool { return p.votes(lead) == 3 })
	gone := p.servers[slices.IndexFunc(p.servers, func(s *poolServer) bool { return s != lead })]
	st, err := gone.status()
	do(t, err)
	leads, err := lead.status()
	do(t, err)
	remove := func(id string) (string, error) {
		return cede(t, "operator", "raft", "remove", id, "--addr", lead.c.Address())
	}
	for id, want := range map[string]string{leads.ServerID: "leads", st.ServerID: "is alive", "NOBODY": "does not belong"} {
		if said, err := remove(id); err == nil || !strings.Contains(said, want) {
			t.Errorf("%s is removed: %v: %s", id, err, said)
		}
	}
	gone.kill()
	eventually(t, "who is gone is removed", func() bool {
		_, err := remove(st.ServerID) // refused until the pool knows that it is gone
		return err == nil
	})
	now, err := lead.status()
	do(t, err)
	if len(now.Servers) != 2 || slices.ContainsFunc(now.Servers, func(s *client.RaftServer) bool { return s.ID == st.ServerID }) {
		t.Errorf("the servers are %+v", now.Servers)
	}
	_, err = p.c.Jobs().Register(t.Context(), simJob("after"), nil)
	do(t, err)
}

// votes is how many servers vote, as one of them says.
func (p *processPool) votes(s *poolServer) (n int) {
	st, err := s.status()
	for i := range st.Servers {
		if err == nil && st.Servers[i].Voter {
			n++
		}
	}
	return n
}
