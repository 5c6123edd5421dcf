package agent_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/agent"
)

// clusters is an in-memory server for many nodes, each with its own cluster.
type clusters struct {
	mu    sync.Mutex
	nodes map[string]*cluster
}

var _ agent.Servers = (*clusters)(nil)

func (c *clusters) of(id string) *cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes[id] == nil {
		c.nodes[id] = newCluster()
	}
	return c.nodes[id]
}

func (c *clusters) Register(ctx context.Context, n *agent.Node, secret string) (agent.Lease, error) {
	return c.of(n.ID).Register(ctx, n, secret)
}

func (c *clusters) Heartbeat(ctx context.Context, id, secret string) (agent.Lease, error) {
	return c.of(id).Heartbeat(ctx, id, secret)
}

func (c *clusters) Allocations(ctx context.Context, id, secret string, index uint64, wait time.Duration) (*agent.Assignment, error) {
	return c.of(id).Allocations(ctx, id, secret, index, wait)
}

func (c *clusters) Update(ctx context.Context, id, secret string, updates []agent.Update) error {
	return c.of(id).Update(ctx, id, secret, updates)
}

func fleet(t *testing.T, c *clusters, nodes int, change ...func(*agent.FleetConfig)) *agent.Fleet {
	t.Helper()
	conf := agent.FleetConfig{
		Servers: c, Nodes: nodes, Node: func(n int) agent.Node {
			return agent.Node{ID: fmt.Sprint("n", n), Capacity: map[string]int64{"cpu": 1000}}
		},
	}
	for _, f := range change {
		f(&conf)
	}
	f, err := agent.NewFleet(conf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestFleet_SendsHeartbeatsExceptSilencedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clusters{nodes: map[string]*cluster{}}
		const nodes, silent = 400, 300
		f := fleet(t, c, nodes)
		if err := f.WaitRegistered(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(time.Minute)
		s := f.Stats()
		if s.Registered != nodes || s.Failures != 0 || s.Heartbeats < nodes*11 || s.Heartbeats > nodes*16 {
			t.Errorf("after a minute at a TTL of 10 s: %+v", s)
		}
		f.SetSilent(silent)
		settle(10 * time.Second)
		before := f.Stats().Heartbeats
		settle(time.Minute)
		if n := f.Stats().Heartbeats - before; n < (nodes-silent)*11 || n > (nodes-silent)*16 {
			t.Errorf("%d of %d nodes sent %d heartbeats in a minute", nodes-silent, nodes, n)
		}
		f.SetSilent(0)
		settle(time.Second)
		if n := c.of("n0").beats; n == 0 {
			t.Error("a silenced node sent no heartbeat afterwards")
		}
	})
}

func TestFleet_MatchesSimDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clusters{nodes: map[string]*cluster{}}
		f := fleet(t, c, 3)
		settle(time.Second)
		n := c.of("n1")
		stubborn := simulated("stubborn", `{"ignore_term":true}`)
		stubborn.Tasks[0].KillTimeout = 20 * time.Second
		n.place(stubborn, simulated("short", `{"run_for":"3s"}`), simulated("bad", `{"run_for":"3s","exit_code":1}`), simulated("typo", `{"x":1}`), shell("process", ""))
		f.Changed("n1")
		f.Changed("unknown")
		settle(time.Second)
		if n.status("stubborn") != agent.StatusRunning || n.status("typo") != agent.StatusFailed || n.status("process") != agent.StatusFailed {
			t.Fatalf("after a second: %v", n.order())
		}
		settle(10 * time.Second)
		if n.status("short") != agent.StatusComplete || n.status("bad") != agent.StatusFailed {
			t.Errorf("after ten: %v", n.order())
		}
		n.do(func() {
			n.unwant("stubborn")
			n.allocs["heir"] = simulated("heir", ``, "stubborn")
		})
		f.Changed("n1")
		settle(19 * time.Second)
		if n.status("heir") != agent.StatusPending {
			t.Errorf("status while the victim runs: %s", n.status("heir"))
		}
		settle(10 * time.Second)
		if n.status("heir") != agent.StatusRunning || n.status("stubborn") != agent.StatusComplete {
			t.Errorf("at the end: %v", n.order())
		}
		if list := n.order(); !slices.Contains(list, "heir running") {
			t.Errorf("reports: %v", list)
		}
	})
}

// A node that is notified of a change polls immediately, before its next poll is due.
func TestFleet_ChangedTriggersPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clusters{nodes: map[string]*cluster{}}
		f := fleet(t, c, 3, func(conf *agent.FleetConfig) { conf.Poll = time.Hour })
		settle(time.Minute)
		before := f.Stats().Polls
		c.of("n1").place(simulated("late", ""))
		for range 5 {
			f.Changed("n1")
		}
		settle(2 * time.Second)
		if got := c.of("n1").status("late"); got != agent.StatusRunning {
			t.Errorf("it is %s", got)
		}
		if polls := f.Stats().Polls - before; polls < 1 || polls > 2 {
			t.Errorf("%d polls for one change", polls)
		}
		settle(time.Hour)
		if polls := f.Stats().Polls - before; polls < 4 || polls > 5 {
			t.Errorf("three nodes polled %d times in an hour", polls)
		}
	})
}

func BenchmarkFleet_Registers5000(b *testing.B) {
	for b.Loop() {
		c := &clusters{nodes: map[string]*cluster{}}
		f, err := agent.NewFleet(agent.FleetConfig{Servers: c, Nodes: 5000, Node: func(int) agent.Node { return agent.Node{} }})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		if err := f.WaitRegistered(ctx); err != nil {
			b.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
