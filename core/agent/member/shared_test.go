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

// begin starts an agent, and stops the previous one first.
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

// units returns an assignment of one replica that requests n units.
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

// last returns the last update of an assignment.
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
			s.Errorf("leases reported to the other pool: %+v", leases)
		}
		if len(s.a.leases) != 0 {
			s.Errorf("own leases reported to the pool: %+v", s.a.leases)
		}
		s.b.assign(units("y", 6, 1))
		s.expect("x running 1", "")
		if u := s.b.last("y"); u.ClientStatus != "failed" || !strings.Contains(u.Description, "another pool") {
			s.Errorf("update of the rejected assignment: %+v", u)
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
		time.Sleep(3 * time.Second) // the kill timeout of low is 5 s
		s.b.expect(s.T, "high pending 0")
		s.expect("", "high running 1")
		if u := s.a.last("low"); u.ClientStatus != "failed" {
			s.Errorf("update of the revoked assignment: %+v", u)
		}
		s.a.assign(units("again", 6, 1)) // it does not get the capacity back
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

// Capacity freed by the victims of a pool is reserved for its claim until the claim
// becomes an assignment. If the pool disconnects, the claim expires.
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
			s.Errorf("update of the assignment that requests claimed capacity: %+v", u)
		}
		s.a.assign(units("high", 8, 5))
		s.expect("high running 1", "")

		s.a.assign(claim("claim/of/other", 8, 5))
		s.expect("claim/of/other pending 0", "")
		s.a.setDown(true)
		time.Sleep(10 * time.Second)
		s.b.assign(units("z", 6, 2))
		time.Sleep(5 * time.Second)
		s.b.expect(s.T, "") // the claim has not expired yet
		time.Sleep(2 * time.Minute)
		s.b.assign(units("late", 6, 2))
		time.Sleep(10 * time.Second)
		s.b.expect(s.T, "late running 1")
		s.a.setDown(false)
	})
}

// A workload continues under its lease while its servers are silent and the agent
// restarts; the lease file still holds its pool.
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
			s.Errorf("workloads are %v", there)
		}
		s.b.assign(units("higher", 6, 2)) // a higher priority revokes it while its pool is disconnected
		time.Sleep(20 * time.Second)
		s.b.expect(s.T, "higher running 1")
		s.a.setDown(false)
		s.expect("", "higher running 1")
	})
}

// Stopping replicas use their capacity until they have ended.
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
	for _, want := range []string{`name ""`, `name "a/b"`, "no servers", "duplicate pool"} {
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
