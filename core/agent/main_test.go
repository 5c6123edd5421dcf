package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/agent/driver/exec"
	"github.com/cede-scheduler/cede/core/agent/driver/sim"
	"github.com/cede-scheduler/cede/sdk/client"
)

// TestMain also runs the test binary as the supervisor of exec tasks.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == exec.SupervisorArg {
		os.Exit(exec.Supervise())
	}
	goleak.VerifyTestMain(m)
}

// cluster is an in-memory server for one node.
type cluster struct {
	mu         sync.Mutex
	index      uint64
	allocs     map[string]*agent.Allocation
	changed    chan struct{}
	registered int
	known      bool
	beats      int
	refuse     error // error returned for updates
	history    []agent.Update
	batches    int
}

func newCluster() *cluster {
	return &cluster{index: 1, allocs: map[string]*agent.Allocation{}, changed: make(chan struct{})}
}

var _ agent.Servers = (*cluster)(nil)

func (c *cluster) Register(context.Context, *agent.Node, string) (agent.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registered++
	c.known = true
	return agent.Lease{TTL: 10 * time.Second}, nil
}

func (c *cluster) Heartbeat(context.Context, string, string) (agent.Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return agent.Lease{}, agent.ErrUnknownNode
	}
	c.beats++
	return agent.Lease{TTL: 10 * time.Second}, nil
}

func (c *cluster) Allocations(ctx context.Context, _, _ string, index uint64, wait time.Duration) (*agent.Assignment, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		c.mu.Lock()
		changed, now := c.changed, c.index
		if index == 0 || now != index {
			as := &agent.Assignment{Index: now}
			for _, a := range c.allocs {
				if !a.Status.Terminal() {
					as.Allocations = append(as.Allocations, a)
				}
			}
			c.mu.Unlock()
			return as, nil
		}
		c.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			index = 0
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *cluster) Update(_ context.Context, _, _ string, updates []agent.Update) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil {
		return c.refuse
	}
	c.batches++
	for _, u := range updates {
		c.history = append(c.history, u)
		if old := c.allocs[u.ID]; old != nil && !old.Status.Terminal() {
			a := *old
			a.Status = u.Status
			c.allocs[u.ID] = &a
		}
	}
	c.touch()
	return nil
}

func (c *cluster) touch() {
	c.index++
	close(c.changed)
	c.changed = make(chan struct{})
}

// do changes the state of the server.
func (c *cluster) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.touch()
}

func (c *cluster) place(allocs ...*agent.Allocation) {
	c.do(func() {
		for _, a := range allocs {
			c.allocs[a.ID] = a
		}
	})
}

// stop sets the desired status of allocations to stop.
func (c *cluster) stop(ids ...string) {
	c.do(func() { c.unwant(ids...) })
}

func (c *cluster) unwant(ids ...string) {
	for _, id := range ids {
		a := *c.allocs[id]
		a.Run, a.Reason = false, "preempted"
		c.allocs[id] = &a
	}
}

// restore restores a state in which every allocation ran.
func (c *cluster) restore() {
	c.do(func() {
		for id, a := range c.allocs {
			before := *a
			before.Run, before.Status = true, agent.StatusRunning
			c.allocs[id] = &before
		}
	})
}

// status returns the last reported status of an allocation.
func (c *cluster) status(id string) agent.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.allocs[id]; a != nil {
		return a.Status
	}
	return ""
}

func (c *cluster) last(id string) (u agent.Update) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.history {
		if h.ID == id {
			u = h
		}
	}
	return u
}

// order returns all reports in order, each as "id status".
func (c *cluster) order() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.history {
		list = append(list, h.ID+" "+string(h.Status))
	}
	return list
}

// work returns an allocation with one task.
func work(id, driverName string, priority int, config string, victims ...string) *agent.Allocation {
	return &agent.Allocation{
		ID: id, Name: id, Namespace: "default", JobID: "job-" + id, Group: "g", Run: true, Priority: priority, Preempted: victims,
		Status: agent.StatusPending, Resources: map[string]int64{"memory": 100},
		Tasks: []agent.Task{{Name: "main", Driver: driverName, Config: json.RawMessage(config), MemoryMB: 100, KillTimeout: 2 * time.Second}},
	}
}

func simulated(id, config string, victims ...string) *agent.Allocation {
	return work(id, "sim", 50, config, victims...)
}

func shell(id, script string, victims ...string) *agent.Allocation {
	config, _ := json.Marshal(map[string]any{"command": "/bin/sh", "args": []string{"-c", script}})
	return work(id, "exec", 50, string(config), victims...)
}

// node is an agent that runs until stop is called.
type node struct {
	*agent.Agent
	stop func()
}

func start(t *testing.T, c *cluster, change func(*agent.Config)) *node {
	t.Helper()
	conf := agent.Config{
		Servers: c, DataDir: t.TempDir(), Drivers: map[string]driver.Driver{"sim": sim.Driver{}},
		Node:  agent.Node{Name: "n", Capacity: map[string]int64{"memory": 1000}},
		Retry: 20 * time.Millisecond,
	}
	if change != nil {
		change(&conf)
	}
	a, err := agent.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	n := &node{Agent: a}
	n.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

// patience is the timeout of all waits, long enough for a busy machine.
const patience = 20 * time.Second

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func (c *cluster) await(t *testing.T, id string, want agent.Status) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %s", id, want), func() bool { return c.status(id) == want })
}

// authorizeOnly permits reads with one token only.
func authorizeOnly(token string) func(context.Context, string, string) error {
	return func(_ context.Context, given, _ string) error {
		if given != token {
			return &client.Error{StatusCode: http.StatusForbidden, Code: client.CodeForbidden, Message: "no"}
		}
		return nil
	}
}
