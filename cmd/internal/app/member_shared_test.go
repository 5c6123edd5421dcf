package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/agent/member"
	"github.com/cede-scheduler/cede/sdk/client"
)

// wire sits between an agent and the servers of a pool. If a drop is configured, it
// loses requests or responses.
type wire struct {
	*httptest.Server
	lossy, cut atomic.Bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	proxy.ModifyResponse = func(*http.Response) error {
		if w.cut.Load() || w.lossy.Load() && rand.IntN(4) == 0 {
			return errors.New("the answer is lost")
		}
		return nil
	}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.cut.Load() || w.lossy.Load() && rand.IntN(4) == 0 {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
	})
	return w
}

// guarded is a driver that checks that the cluster never runs more than its capacity.
type guarded struct {
	*member.Sim
	t        *testing.T
	capacity int64

	mu  sync.Mutex
	cpu map[string]int64 // request of a replica
}

func (g *guarded) Run(ctx context.Context, w *member.Workload) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cpu[w.ID] = w.Resources["cpu"]
	if err := g.Sim.Run(ctx, w); err != nil {
		return err
	}
	there, err := g.Status(ctx)
	total := int64(0)
	for id, status := range there {
		total += g.cpu[id] * int64(status.Held)
	}
	if total > g.capacity {
		g.t.Errorf("capacity is %d, and requests of running bindings are %d: %+v", g.capacity, total, there)
	}
	return err
}

// finish ends the stopping replicas of a binding.
func (g *guarded) finish(id string) {
	g.t.Helper()
	if err := errors.Join(g.Sim.Run(g.t.Context(), &member.Workload{ID: id}), g.Stop(g.t.Context(), id)); err != nil {
		g.t.Fatal(err)
	}
}

// sharedCluster is a member cluster whose agent registers with two pools.
type sharedCluster struct {
	t      *testing.T
	driver *guarded
	dir    string
	pools  [2]*started
	wires  [2]*wire
	stop   func()
}

func newSharedCluster(t *testing.T, cpu int64) *sharedCluster {
	t.Helper()
	capacity := map[string]int64{"cpu": cpu, "memory": 100_000}
	c := &sharedCluster{
		t: t, dir: t.TempDir(), stop: func() {},
		driver: &guarded{Sim: member.NewSim(capacity), t: t, capacity: cpu, cpu: map[string]int64{}},
	}
	for i := range c.pools {
		c.pools[i] = start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.enabled": "false"})}))
		c.wires[i] = newWire(t, c.pools[i].URL())
	}
	t.Cleanup(func() { c.stop() })
	c.restart()
	return c
}

// restart stops the agent, if one runs, and starts another on its data.
func (c *sharedCluster) restart() {
	c.t.Helper()
	c.stop()
	var pools []member.Pool
	var clients []*client.Client
	for i, w := range c.wires {
		servers, err := client.New(client.Config{Address: w.URL, Silence: 2 * time.Second})
		if err != nil {
			c.t.Fatal(err)
		}
		clients = append(clients, servers)
		pools = append(pools, member.Pool{Name: []string{"a", "b"}[i], Servers: servers.MemberAgent()})
	}
	agent, err := member.New(member.Config{
		Pools: pools, Driver: c.driver, Cluster: "shared", DataDir: c.dir, Poll: 50 * time.Millisecond, Retry: 50 * time.Millisecond, Keep: 2 * time.Second,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		agent.Run(ctx)
	}()
	c.stop = sync.OnceFunc(func() {
		cancel()
		<-done
		for _, x := range clients {
			x.Close()
		}
	})
}

// status returns the status of a binding in a pool.
func (s *started) status(id string) *client.BindingStatus {
	s.t.Helper()
	b, _, err := s.c.Bindings().Get(s.t.Context(), id, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// waits waits until a binding has been evaluated and is pending for lack of capacity.
func (s *started) waits(id string) {
	s.t.Helper()
	eventually(s.t, id+" is evaluated and pending", func() bool {
		b := s.status(id)
		return b.Status == "pending" && b.StatusDescription != ""
	})
}

// Without claims, two schedulers would evict each other's allocations in turn. The
// workload with the higher priority stays, and the other pool receives its status.
func TestMember_TwoPoolsDoNotEvictEachOtherInTurn(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, 400) // one replica
	a, b := c.pools[0], c.pools[1]
	a.bind("low", 10, 1, "")
	a.ready("low", 1)
	b.bind("mid", 30, 1, "")
	first := b.ready("mid", 1).Assignments[0].ID
	c.wires[0].lossy.Store(true)
	c.wires[1].lossy.Store(true)
	a.waits("low")
	c.restart()
	b.bind("equal", 30, 1, "")
	a.bind("equal", 30, 1, "")
	b.waits("equal")
	a.waits("equal")
	if now := b.ready("mid", 1).Assignments; len(now) != 1 || now[0].ID != first {
		t.Errorf("mid was placed as %s, and now is %+v", first, now)
	}
	a.bind("high", 50, 1, "")
	a.ready("high", 1)
	b.waits("mid")
	if _, err := a.c.Bindings().Stop(t.Context(), "high", true, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a binding of priority 30 is placed", func() bool {
		return b.status("mid").Ready+b.status("equal").Ready+a.status("equal").Ready == 1
	})
	a.waits("low")
}

// A pool fails while it holds a claim. If the claim expires, other pools use the
// capacity; the assigned bindings continue to run, are not reassigned, and are
// adopted again.
func TestMember_FailedPoolKeepsBindingsAndLosesClaims(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, 1200) // three replicas
	a, b := c.pools[0], c.pools[1]
	a.bind("keeps", 40, 1, "")
	a.ready("keeps", 1)
	slow := time.Hour
	priority, two := 10, 2
	_, err := a.c.Bindings().Put(t.Context(), &client.Binding{
		ID: "slow", Priority: &priority, Replicas: &two, Resources: map[string]int64{"cpu": 400, "memory": 100}, KillTimeout: &slow,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.ready("slow", 2)
	a.bind("claimant", 60, 2, "") // the driver stops "slow" with a delay
	eventually(t, "the capacity is claimed", func() bool { return len(a.status("claimant").Claims) == 1 })
	eventually(t, "the other pool sees the claim", func() bool {
		cluster, _, err := b.c.Clusters().Get(t.Context(), "shared", nil)
		return err == nil && cluster.Free["cpu"] <= 0
	})
	c.wires[0].cut.Store(true)
	c.wires[0].CloseClientConnections()
	c.restart()
	b.bind("mine", 30, 1, "")
	eventually(t, "it is assigned the capacity that slow still uses", func() bool {
		s := b.status("mine")
		return len(s.Assignments) == 1 && strings.Contains(s.Assignments[0].ClientDescription, "still in use")
	})
	c.driver.finish(a.status("slow").Assignments[0].ID)
	b.ready("mine", 1)
	if status, err := c.driver.Status(t.Context()); err != nil || len(status) != 2 {
		t.Errorf("the cluster runs %+v, %v; want the bindings of the failed pool and of the other pool", status, err)
	}
	c.wires[0].cut.Store(false)
	a.ready("keeps", 1)
}

// Six bindings of two pools contend for a cluster that fits two, while messages are
// lost and agents restart. The cluster must never exceed its capacity, and in the end
// exactly the two bindings with the highest priority run.
func TestMember_TwoPoolsContendAndHighestPrioritiesWin(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, 800)
	for _, w := range c.wires {
		w.lossy.Store(true)
	}
	for i := range 6 {
		c.pools[i%2].bind(fmt.Sprint("b", i), 20+10*i, 1, "")
		if i == 2 || i == 4 {
			c.restart()
		}
	}
	for _, w := range c.wires {
		w.lossy.Store(false)
	}
	c.pools[0].ready("b4", 1)
	c.pools[1].ready("b5", 1)
	for i := range 4 {
		c.pools[i%2].waits(fmt.Sprint("b", i))
	}
	want := map[string]bool{c.pools[0].ready("b4", 1).Assignments[0].ID: true, c.pools[1].ready("b5", 1).Assignments[0].ID: true}
	there, err := c.driver.Status(t.Context())
	for id := range there {
		if !want[id] {
			t.Errorf("the cluster runs %s, want it stopped", id)
		}
	}
	if err != nil || len(there) != len(want) {
		t.Errorf("the cluster runs %+v, %v; want %v", there, err, want)
	}
}

// The same with agents in processes that are set up by configuration.
func TestMember_SharesClusterWithConfiguredPools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var pools [2]*started
	text := "member:\n  enabled: true\n  cluster: shared\n  driver: sim\n  capacity: {cpu: 400, memory: 1000}\n  poll: 50ms\n  pools:\n"
	for i := range pools {
		pools[i] = start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.enabled": "false"})}))
		text += fmt.Sprintf("    - {name: p%d, servers: [%q]}\n", i, pools[i].URL())
	}
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, load(t, config.Sources{Files: []string{file}, Flags: loopback(map[string]string{"data_dir": dir, "log.level": "warn"})}))
	pools[0].bind("first", 20, 1, "")
	pools[0].ready("first", 1)
	pools[1].bind("second", 20, 1, "")
	pools[1].waits("second")
	cluster, _, err := pools[1].c.Clusters().Get(t.Context(), "shared", nil)
	if err != nil || len(cluster.Claims) != 1 || cluster.Claims[0].Pool != "p0" {
		t.Errorf("cluster in the other pool is %+v, %v", cluster, err)
	}
}
