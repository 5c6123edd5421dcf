package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/sdk/client"
)

// machines are simulated nodes that are connected to the server.
type machines struct {
	t      *Target
	fleet  *agent.Fleet
	leases *leases
	ids    []string
	cancel context.CancelFunc
	done   chan struct{}
}

// never exceeds the duration of any run: nodes poll for allocations only when ask is
// called.
const never = 1000 * time.Hour

// connect starts nodes. poll is the interval at which they poll for allocations; 0:
// with each heartbeat.
func (t *Target) connect(ctx context.Context, nodes int, seed uint64, poll time.Duration, capacity map[string]int64) (*machines, error) {
	ctx, cancel := context.WithCancel(ctx)
	m := &machines{t: t, leases: &leases{Servers: agent.Remote(t.c.NodeAgent())}, cancel: cancel, done: make(chan struct{})}
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // sizes need no secure randomness
	var err error
	m.fleet, err = agent.NewFleet(agent.FleetConfig{
		Servers: m.leases, Nodes: nodes, Workers: 64, Poll: poll,
		Node: func(n int) agent.Node {
			id := t.id("node", n)
			m.ids = append(m.ids, id)
			own := map[string]int64{}
			for name, amount := range capacity { // up to a tenth more
				own[name] = amount + random.Int64N(amount/10+1)
			}
			return agent.Node{ID: id, Name: id, Datacenter: "dc1", Class: "sim", Capacity: own, Attributes: map[string]string{"driver.sim": "1"}}
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(m.done)
		_ = m.fleet.Run(ctx) // returns when its context ends
	}()
	return m, nil
}

// registered waits until the server lists all nodes.
func (m *machines) registered(ctx context.Context) error {
	return m.t.until(ctx, "nodes register", len(m.ids), 20*time.Millisecond, func() (int, error) {
		return int(m.fleet.Stats().Registered - m.fleet.Stats().Failures), nil
	})
}

// ask lets all nodes poll for their allocations.
func (m *machines) ask() {
	for _, id := range m.ids {
		m.fleet.Changed(id)
	}
}

// close disconnects the nodes. Further calls have no effect.
func (m *machines) close() {
	m.cancel()
	<-m.done
}

// leases records the end of each node's lease and the latency of heartbeats.
type leases struct {
	agent.Servers
	registrations, heartbeats latencies

	mu   sync.Mutex
	last time.Time
	who  string
}

func (l *leases) note(id string, lease agent.Lease, err error) (agent.Lease, error) {
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if end := time.Now().Add(lease.TTL); end.After(l.last) {
			l.last, l.who = end, id
		}
	}
	return lease, err
}

// Register registers a node.
func (l *leases) Register(ctx context.Context, n *agent.Node, secret string) (agent.Lease, error) {
	began := time.Now()
	lease, err := l.Servers.Register(ctx, n, secret)
	if err == nil {
		l.registrations.since(began)
	}
	return l.note(n.ID, lease, err)
}

// Heartbeat renews a lease.
func (l *leases) Heartbeat(ctx context.Context, id, secret string) (agent.Lease, error) {
	began := time.Now()
	lease, err := l.Servers.Heartbeat(ctx, id, secret)
	if err == nil {
		l.heartbeats.since(began)
	}
	return l.note(id, lease, err)
}

// end returns the latest end of a lease, and its node.
func (l *leases) end() (at time.Time, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.who
}

// ask is the resource request of an instance, in millicores and in MiB.
const ask = 10

// job returns a job with one group of equal instances for the simulated driver.
func job(id, kind string, priority, count int) *client.Job {
	amount := ask
	none := time.Duration(0)
	group := &client.TaskGroup{
		Name:  "g",
		Tasks: []*client.Task{{Name: "t", Driver: "sim", KillTimeout: &none, Resources: &client.Resources{CPU: &amount, MemoryMB: &amount}}},
	}
	if kind != "system" {
		group.Count = &count
	}
	return &client.Job{ID: id, Type: kind, Priority: &priority, TaskGroups: []*client.TaskGroup{group}}
}
