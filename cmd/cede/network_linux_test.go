package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// netPool is what the faults are played on.
func (p *processPool) fabric() *testNet { return p.net.(*testNet) }

// others is everybody but one.
func (p *processPool) others(one *poolServer) (names []string) {
	for _, s := range p.servers {
		if s != one {
			names = append(names, s.name)
		}
	}
	return names
}

// follower is one that does not lead.
func (p *processPool) follower(lead *poolServer) *poolServer {
	for _, s := range p.servers {
		if s != lead {
			return s
		}
	}
	return nil
}

// otherLeader waits until another server leads than one that lost the lead.
func (p *processPool) otherLeader(than *poolServer) (lead *poolServer) {
	p.t.Helper()
	eventually(p.t, "another one leads", func() bool {
		for _, s := range p.servers {
			if s != than && s.leads() {
				lead = s
				return true
			}
		}
		return false
	})
	return lead
}

func (s *poolServer) leads() bool {
	st, err := s.status()
	return err == nil && st.State == "Leader" && s.ready()
}

// netFaults are what is done to a pool in namespaces while people work with it. Each
// ends with the fault: that the pool finds together again is looked at after it.
var netFaults = []struct {
	name string
	play func(p *processPool, h *history)
}{
	{"a fifth of all packets is lost", func(p *processPool, h *history) {
		p.fabric().lossy(20)
		h.goesOn(15)
	}},
	{"the leader hears nobody", func(p *processPool, h *history) {
		lead := p.leader()
		p.fabric().deaf(lead.name, p.others(lead)...)
		p.otherLeader(lead)
		h.goesOn(15)
	}},
	{"a follower does not hear the leader", func(p *processPool, h *history) {
		lead := p.leader()
		before, err := lead.status()
		do(p.t, err)
		p.fabric().deaf(p.follower(lead).name, lead.name)
		h.goesOn(30)
		time.Sleep(3 * time.Second) // in which it asks for votes, and gets none
		if now, err := lead.status(); err != nil || now.State != "Leader" || now.Term != before.Term {
			p.t.Errorf("a follower that hears others costs the leader its lead: it was in term %d, now it is %s in %d, %v", before.Term, now.State, now.Term, err)
		}
	}},
	{"a follower is alone", func(p *processPool, h *history) {
		lead := p.leader()
		alone := p.follower(lead)
		p.fabric().part([]string{alone.name}, p.others(alone))
		h.goesOn(30)
		alone.isAlone()
	}},
	{"the leader is alone", func(p *processPool, h *history) {
		alone := p.leader()
		p.fabric().part([]string{alone.name}, p.others(alone))
		p.otherLeader(alone)
		h.goesOn(30)
		alone.isAlone()
	}},
	{"the leader is stopped for longer than its lease", func(p *processPool, h *history) {
		stopped := p.leader()
		do(p.t, stopped.cmd.Process.Signal(syscall.SIGSTOP))
		// It is asked while it cannot answer, and finds that when it wakes.
		asked := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), patience)
			defer cancel()
			_, err := stopped.c.Jobs().Register(ctx, simJob("asked-asleep"), nil)
			asked <- err
		}()
		now := p.otherLeader(stopped)
		h.goesOn(15)
		do(p.t, stopped.cmd.Process.Signal(syscall.SIGCONT))
		if err := <-asked; err == nil {
			// By way of the new leader, or it would be an empty promise.
			if _, _, err := now.c.Jobs().Get(p.t.Context(), "asked-asleep", &client.QueryOptions{Consistent: true}); err != nil {
				p.t.Errorf("a leader that slept acknowledges what is not there: %v", err)
			}
		}
	}},
	{"the leader is killed", func(p *processPool, h *history) {
		killed := p.leader()
		killed.kill()
		p.otherLeader(killed)
		h.goesOn(15)
		killed.start()
	}},
}

// isAlone holds a server that reaches no other to what it says: no write, no
// consistent read, and that what it tells may be old.
func (s *poolServer) isAlone() {
	t := s.p.t
	t.Helper()
	eventually(t, "it knows that nobody leads", func() bool {
		st, err := s.status()
		return err == nil && st.State != "Leader" && st.LeaderID == ""
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.c.Jobs().Register(ctx, simJob("alone"), nil); !client.HasCode(err, client.CodeNoLeader) {
		t.Errorf("a write at who is alone says %v", err)
	}
	if _, _, err := s.c.Jobs().Get(ctx, "before", &client.QueryOptions{Consistent: true}); !client.HasCode(err, client.CodeNoLeader) {
		t.Errorf("a consistent read at who is alone says %v", err)
	}
	_, meta, err := s.c.Jobs().Get(ctx, "before", &client.QueryOptions{Stale: true})
	if err != nil || meta.KnownLeader {
		t.Errorf("a stale read at who is alone says %+v, %v", meta, err)
	}
}

// A pool in namespaces of the network lives through packets that are lost, one-way
// and whole partitions, servers that sleep and servers that are killed. People work
// with it all the time; when a fault is over the pool finds together by itself.
func TestNetwork_Faults(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("CEDE_SOAK") != "" {
		rounds = 15
	}
	p := newNetPool(t)
	for _, s := range p.servers {
		s.start()
	}
	lead := p.leader()
	p.node("n1")
	_, err := lead.c.Jobs().Register(t.Context(), simJob("before"), nil)
	do(t, err)
	h := newHistory(t, p.people(4))
	for range rounds {
		for _, f := range netFaults {
			began := time.Now()
			f.play(p, h)
			p.fabric().heal()
			healed := time.Now()
			p.together() // an election that began with the fault may end after it
			h.goesOn(5)
			t.Logf("%s: %v, and together again after %v", f.name, time.Since(began).Round(time.Millisecond), time.Since(healed).Round(time.Millisecond))
			if t.Failed() {
				t.Fatal(f.name)
			}
		}
	}
	h.end(p.c)
	p.settled([]string{"before", "shared-0", "shared-1", "shared-2"})
	p.replayed()
}

// isBehind is how many entries a server that follows another one lacks.
func (s *poolServer) isBehind(lead *poolServer) uint64 {
	own, err := s.status()
	theirs, failed := lead.status()
	if err != nil || failed != nil || own.State != "Follower" || own.LeaderID != theirs.ServerID {
		return 1 << 20
	}
	return theirs.AppliedIndex - min(own.AppliedIndex, theirs.AppliedIndex)
}

// An agent goes on with another server when its own dies, and work on a node that is
// out of reach is replaced once its time is up and not before; what was replaced is
// stopped when the node is back, and what was kept for it goes on.
func TestNetwork_Agents(t *testing.T) {
	t.Parallel()
	p := newNetPool(t)
	p.ttl, p.grace = time.Second, 4*time.Second
	for _, s := range p.servers {
		s.start()
	}
	p.leader()
	p.node("n1")
	_, err := p.c.Jobs().Register(t.Context(), simJob("work"), nil)
	do(t, err)
	first := p.worksOn("n1")
	patient := simJob("patient")
	patient.TaskGroups[0].Count, patient.TaskGroups[0].Disconnect = new(1), &client.DisconnectStrategy{Replace: new(false)}
	_, err = p.c.Jobs().Register(t.Context(), patient, nil)
	do(t, err)
	kept := p.only("patient", "running")
	p.node("n2")

	// One server after the other, so that whichever the agents talked to is among
	// them; the first one alone where there is no time: it is in every list the first.
	die := p.servers
	if os.Getenv("CEDE_SOAK") == "" {
		die = die[:1]
	}
	for _, s := range die {
		s.kill()
		time.Sleep(7 * time.Second) // longer than a node may be silent
		if now := p.worksOn("n1"); !slices.Equal(now, first) {
			t.Errorf("work was placed anew when %s died", s.name)
		}
		s.start()
		p.leader()
		p.follows(s)
	}

	servers := []string{"s1", "s2", "s3"}
	parted := time.Now()
	p.fabric().part([]string{"n1"}, servers)
	time.Sleep(2 * time.Second) // less than that
	p.fabric().heal()
	away := time.Since(parted)
	time.Sleep(4 * time.Second)
	if away > 3*time.Second {
		t.Logf("the node was away for %v, as the machine is slow: whether it was back in time is not looked at", away)
		first = p.worksOn("n1")
	} else if now := p.worksOn("n1"); !slices.Equal(now, first) {
		t.Error("work was placed anew though its node was back in time")
	}

	p.fabric().part([]string{"n1"}, servers)
	second := p.worksOn("n2")
	if now := p.only("patient", "unknown"); now != kept {
		t.Errorf("%s runs in the place of %s, which is kept for its node", now, kept)
	}
	p.fabric().heal()
	if now := p.only("patient", "running"); now != kept {
		t.Errorf("%s runs when the node is back, rather than %s", now, kept)
	}
	eventually(t, "what was replaced is stopped", func() bool {
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
	if now := p.worksOn("n2"); !slices.Equal(now, second) {
		t.Error("work was placed anew when a node came back")
	}
	p.settled([]string{"work"})
	p.replayed()
}

// only waits until the one instance of a job has a status, and gives its id.
func (p *processPool) only(job, status string) (id string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("the instance of %s is %s", job, status), func() bool {
		list, _, err := p.c.Jobs().Allocations(p.t.Context(), job, nil)
		if err != nil || len(list) != 1 || list[0].ClientStatus != status {
			return false
		}
		id = list[0].ID
		return true
	})
	return id
}

// worksOn waits until both instances of the job work run on a node, and gives
// their ids.
func (p *processPool) worksOn(node string) (ids []string) {
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
