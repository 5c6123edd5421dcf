package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// FleetConfig says what a Fleet is made of. Servers, Nodes and Node are needed.
type FleetConfig struct {
	Servers Servers
	Nodes   int
	// Node makes the n-th node; without an ID it gets one.
	Node func(n int) Node
	// Workers is how many requests are under way at a time. Default: 32.
	Workers int
	// Poll is how often a node asks for its allocations when nobody calls Changed
	// for it. Default: with each heartbeat.
	Poll time.Duration
	// ReportWindow is how long a node gathers statuses. Default: 200 ms.
	ReportWindow time.Duration
	// Retry is the pause after a failed request. Default: 1 s.
	Retry  time.Duration
	Logger *slog.Logger // nil: nothing is logged
}

// Fleet is many nodes in one process whose work is only pretended (the driver sim).
//
// A node of its own has a goroutine for its lease, one for its question about
// allocations, one for its reports and one for each task: five thousand of them
// would be a measurement of this program and not of the servers. So a fleet has one
// heap of what is to be done when, and a few goroutines that do it. It does not ask
// and wait: it asks with each heartbeat, and at once where somebody who listens to
// the servers' events calls Changed.
type Fleet struct {
	c      FleetConfig
	log    *slog.Logger
	nodes  []*fleetNode
	byID   map[string]*fleetNode
	agenda *agenda
	stats  fleetCounts
	unborn atomic.Int64  // nodes that were never registered
	born   chan struct{} // closed when there is none left
}

type fleetCounts struct {
	registered, heartbeats, polls, reports, failures, started, ended atomic.Int64
}

// FleetStats counts what a fleet did.
type FleetStats struct {
	Registered, Heartbeats, Polls, Reports, Failures int64 // requests; Failures are of any kind
	Started, Ended                                   int64 // allocations
}

// NewFleet makes a fleet.
func NewFleet(c FleetConfig) (*Fleet, error) {
	if c.Servers == nil || c.Nodes <= 0 || c.Node == nil {
		return nil, errors.New("fleet: servers, a number of nodes and what a node is are needed")
	}
	if c.Workers <= 0 {
		c.Workers = 32
	}
	if c.ReportWindow <= 0 {
		c.ReportWindow = 200 * time.Millisecond
	}
	if c.Retry <= 0 {
		c.Retry = time.Second
	}
	f := &Fleet{c: c, log: c.Logger, byID: make(map[string]*fleetNode, c.Nodes), agenda: newAgenda(), born: make(chan struct{})}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	secret := newUUID()
	for i := range c.Nodes {
		n := &fleetNode{fleet: f, node: c.Node(i), secret: fmt.Sprintf("%s-%d", secret, i), allocs: map[string]*fleetAlloc{}}
		if n.node.ID == "" {
			n.node.ID = newUUID()
		}
		if f.byID[n.node.ID] != nil {
			return nil, fmt.Errorf("fleet: two nodes have the id %s", n.node.ID)
		}
		f.nodes, f.byID[n.node.ID] = append(f.nodes, n), n
	}
	f.unborn.Store(int64(c.Nodes))
	return f, nil
}

// Run lets the nodes live until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	for _, n := range f.nodes {
		f.agenda.add(time.Now(), n.lease)
	}
	var workers sync.WaitGroup
	for range f.c.Workers {
		workers.Go(func() {
			for {
				do, ok := f.agenda.next(ctx)
				if !ok {
					return
				}
				do(ctx)
			}
		})
	}
	workers.Wait()
	return nil
}

// WaitRegistered waits until every node was registered.
func (f *Fleet) WaitRegistered(ctx context.Context) error {
	select {
	case <-f.born:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Changed has a node ask for its allocations at once. Who hears of many changes of
// one node may call it as often as it likes.
func (f *Fleet) Changed(nodeID string) {
	if n := f.byID[nodeID]; n != nil {
		n.pollSoon(0)
	}
}

// SetSilent has the first count nodes fall silent, and the others live: a machine
// that is silent sends nothing and does nothing that anybody could hear of.
func (f *Fleet) SetSilent(count int) {
	for i, n := range f.nodes {
		was := n.silent.Swap(i < count)
		if was && i >= count {
			f.agenda.add(time.Now(), n.lease)
		}
	}
}

// Stats counts what was done so far.
func (f *Fleet) Stats() FleetStats {
	c := &f.stats
	return FleetStats{
		Registered: c.registered.Load(), Heartbeats: c.heartbeats.Load(), Polls: c.polls.Load(), Reports: c.reports.Load(),
		Failures: c.failures.Load(), Started: c.started.Load(), Ended: c.ended.Load(),
	}
}

// failed notes a request that failed, and is when to try it again.
func (f *Fleet) failed(ctx context.Context, what string, n *fleetNode, err error) time.Time {
	f.stats.failures.Add(1)
	if ctx.Err() == nil {
		f.log.DebugContext(ctx, "a request of a simulated node failed", "request", what, "node_id", n.node.ID, "err", err)
	}
	return time.Now().Add(f.c.Retry + rand.N(f.c.Retry/2+1))
}
