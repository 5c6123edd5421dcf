package member

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// sharedFixture is a cluster of 10 units that two pools share.
type sharedFixture struct {
	*testing.T
	a, b *fakeServers
	sim  *Sim
	dir  string
	stop func()
}

func runShared(t *testing.T, story func(*sharedFixture)) {
	synctest.Test(t, func(t *testing.T) {
		s := &sharedFixture{t, newFakeServers(), newFakeServers(), NewSim(map[string]int64{"units": 10}), t.TempDir(), nil}
		s.begin()
		story(s)
		s.stop()
	})
}

// begin starts an agent, after the one before it, if any, was stopped.
func (s *sharedFixture) begin() {
	s.Helper()
	a, err := New(Config{Pools: []Pool{{"a", s.a}, {"b", s.b}}, Driver: s.sim, Cluster: "m", DataDir: s.dir})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	s.stop = func() {
		cancel()
		<-done
	}
}

func (s *sharedFixture) expect(a, b string) {
	s.Helper()
	time.Sleep(10 * time.Second)
	s.a.expect(s.T, a)
	s.b.expect(s.T, b)
}

// units is an assignment of one replica that needs so many units.
func units(id string, n int64, priority int) *client.Assignment {
	return wanted(id, 1, func(a *client.Assignment) {
		a.Priority, a.Preempts, a.Binding.Resources = priority, true, map[string]int64{"units": n}
	})
}

func claim(id string, n int64, priority int) *client.Assignment {
	c := units(id, n, priority)
	c.DesiredStatus = client.DesiredClaim
	return c
}

// last is what a pool was last told of an assignment.
func (d *fakeServers) last(id string) (u client.AssignmentUpdate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, said := range d.said {
		if said.AssignmentID == id {
			u = said
		}
	}
	return u
}

func (d *fakeServers) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func TestShared_GrantsLeaseToOnePoolAndReportsToTheOther(t *testing.T) {
	runShared(t, func(s *sharedFixture) {
		s.a.assign(units("x", 6, 1))
		s.expect("x running 1", "")
		if leases := s.b.leases; len(leases) != 1 || leases[0].Pool != "a" || leases[0].ID != "x" || leases[0].Resources["units"] != 6 || leases[0].Priority != 1 {
			s.Errorf("the other pool hears of %+v", leases)
		}
		if len(s.a.leases) != 0 {
			s.Errorf("the pool hears of its own %+v", s.a.leases)
		}
		s.b.assign(units("y", 6, 1))
		s.expect("x running 1", "")
		if u := s.b.last("y"); u.ClientStatus != "failed" || !strings.Contains(u.Description, "another pool") {
			s.Errorf("who has no room hears %+v", u)
		}
		s.b.assign(units("z", 4, 1))
		s.expect("x running 1", "z running 1")
	})
}

func TestShared_HigherPriorityWaitsForRevokedWorkload(t *testing.T) {
	runShared(t, func(s *sharedFixture) {
		s.a.assign(units("low", 6, 1))
		s.expect("low running 1", "")
		s.b.assign(units("high", 6, 2))
		time.Sleep(3 * time.Second) // of the five that low takes to stop
		s.b.expect(s.T, "high pending 0")
		s.expect("", "high running 1")
		if u := s.a.last("low"); u.ClientStatus != "failed" {
			s.Errorf("who was revoked hears %+v", u)
		}
		s.a.assign(units("again", 6, 1)) // it cannot take it back
		s.expect("", "high running 1")
	})
}

func TestShared_NonPreemptingAssignmentRevokesNothing(t *testing.T) {
	runShared(t, func(s *sharedFixture) {
		s.a.assign(units("low", 6, 1))
		s.expect("low running 1", "")
		never := units("never", 6, 2)
		never.Preempts = false
		s.b.assign(never)
		s.expect("low running 1", "")
	})
}

// Room that a pool's own victims leave is its claimant's, and nobody else's, until
// the claim is an assignment; a pool that dies with a claim loses it.
func TestShared_ClaimHoldsLeaseWhilePoolIsConnected(t *testing.T) {
	runShared(t, func(s *sharedFixture) {
		s.a.assign(units("victim", 8, 1))
		s.expect("victim running 1", "")
		going := units("victim", 8, 1)
		evicted(going)
		s.a.assign(going, claim("claim/of/high", 8, 5))
		s.expect("claim/of/high pending 0", "")
		s.b.assign(units("y", 6, 2))
		s.expect("claim/of/high pending 0", "")
		if u := s.b.last("y"); u.ClientStatus != "failed" {
			s.Errorf("who wants claimed room hears %+v", u)
		}
		s.a.assign(units("high", 8, 5))
		s.expect("high running 1", "")

		s.a.assign(claim("claim/of/other", 8, 5))
		s.expect("claim/of/other pending 0", "")
		s.a.setDown(true)
		time.Sleep(10 * time.Second)
		s.b.assign(units("z", 6, 2))
		time.Sleep(5 * time.Second)
		s.b.expect(s.T, "") // it is kept for a while
		time.Sleep(2 * time.Minute)
		s.b.assign(units("late", 6, 2))
		time.Sleep(10 * time.Second)
		s.b.expect(s.T, "late running 1")
		s.a.setDown(false)
	})
}

// What runs goes on under its lease while its servers are silent and the agent is
// another one, which still knows for whom.
func TestShared_RestartedAgentKeepsLeases(t *testing.T) {
	runShared(t, func(s *sharedFixture) {
		s.a.assign(units("x", 6, 1))
		s.expect("x running 1", "")
		s.stop()
		s.a.setDown(true)
		s.begin()
		s.b.assign(units("y", 6, 1))
		time.Sleep(time.Minute)
		s.b.expect(s.T, "")
		if there, _ := s.sim.Status(s.Context()); there["x"].Ready != 1 {
			s.Errorf("there is %v", there)
		}
		s.b.assign(units("higher", 6, 2)) // and who may, revokes it in the absence of its pool
		time.Sleep(20 * time.Second)
		s.b.expect(s.T, "higher running 1")
		s.a.setDown(false)
		s.expect("", "higher running 1")
	})
}

// Replicas that go hold their room until they are gone.
func TestShared_LeaseShrinksAfterReplicasStop(t *testing.T) {
	three := func(replicas int) *client.Assignment {
		a := units("x", 3, 1)
		a.Replicas = replicas
		return a
	}
	runShared(t, func(s *sharedFixture) {
		driver := &shrinking{Sim: s.sim, held: 3, of: "x"}
		s.stop()
		a, err := New(Config{Pools: []Pool{{"a", s.a}, {"b", s.b}}, Driver: driver, Cluster: "m", DataDir: s.dir})
		if err != nil {
			s.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); a.Run(ctx) }()
		s.stop = func() { cancel(); <-done }
		s.a.assign(three(3))
		s.expect("x running 3", "")
		part := units("x/less/c", 6, 1)
		evicted(part)
		s.a.assign(three(1), part)
		s.b.assign(units("y", 6, 1))
		s.expect("x running 1, x/less/c running 0", "")
		driver.lock.Lock()
		driver.held = 1
		driver.lock.Unlock()
		s.expect("x running 1", "")
		s.b.assign(units("z", 6, 1))
		s.expect("x running 1", "z running 1")
	})
}

func TestNew_RejectsInvalidPools(t *testing.T) {
	_, err := New(Config{Driver: NewSim(nil), Cluster: "m", DataDir: t.TempDir(), Pools: []Pool{{"", newFakeServers()}, {"a/b", nil}, {"", newFakeServers()}}})
	for _, want := range []string{`called ""`, `called "a/b"`, "no servers", "two pools"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestNew_RejectsInvalidLeaseFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "leases.json"), []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{Driver: NewSim(nil), Cluster: "m", DataDir: dir, Pools: []Pool{{"a", newFakeServers()}, {"b", newFakeServers()}}})
	if err == nil || !strings.Contains(err.Error(), "leases.json") {
		t.Errorf("got %v", err)
	}
}
