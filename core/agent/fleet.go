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

// FleetConfig holds the parameters of a Fleet. Servers, Nodes and Node are required.
type FleetConfig struct {
	Servers Servers
	Nodes   int
	// Node returns the n-th node. If it has no ID, it gets one.
	Node func(n int) Node
	// Workers is the maximum number of concurrent requests. Default: 32.
	Workers int
	// Poll is the interval in which a node requests its allocations if Changed is not
	// called for it. Default: with each heartbeat.
	Poll time.Duration
	// ReportWindow is the time in which a node gathers statuses. Default: 200 ms.
	ReportWindow time.Duration
	// Retry is the delay after a failed request. Default: 1 s.
	Retry  time.Duration
	Logger *slog.Logger // nil: no logs
}

// Fleet simulates many nodes in one process (the driver sim).
//
// A real agent has one goroutine each for its lease, its blocking query and its
// reports, and one per task. With five thousand nodes, a benchmark would measure
// these goroutines and not the servers. A fleet therefore has one queue of timers and
// a few goroutines that process it. It does not send blocking queries: a node
// requests its allocations with each heartbeat, and at once if a listener to the
// servers' events calls Changed.
type Fleet struct {
	c             FleetConfig
	log           *slog.Logger
	nodes         []*fleetNode
	byID          map[string]*fleetNode
	timers        *timerQueue
	stats         fleetCounts
	unregistered  atomic.Int64  // nodes that have never been registered
	allRegistered chan struct{} // closed when all nodes have been registered
}

type fleetCounts struct {
	registered, heartbeats, polls, reports, failures, started, ended atomic.Int64
}

// FleetStats counts the requests and allocations of a fleet.
type FleetStats struct {
	Registered, Heartbeats, Polls, Reports, Failures int64 // requests; Failures counts all kinds
	Started, Ended                                   int64 // allocations
}

// NewFleet returns a fleet.
func NewFleet(c FleetConfig) (*Fleet, error) {
	if c.Servers == nil || c.Nodes <= 0 || c.Node == nil {
		return nil, errors.New("fleet: servers, the number of nodes and a node function are required")
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
	f := &Fleet{c: c, log: c.Logger, byID: make(map[string]*fleetNode, c.Nodes), timers: newAgenda(), allRegistered: make(chan struct{})}
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
			return nil, fmt.Errorf("fleet: duplicate node ID %s", n.node.ID)
		}
		f.nodes, f.byID[n.node.ID] = append(f.nodes, n), n
	}
	f.unregistered.Store(int64(c.Nodes))
	return f, nil
}

// Run simulates the nodes until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	for _, n := range f.nodes {
		f.timers.add(time.Now(), n.lease)
	}
	var workers sync.WaitGroup
	for range f.c.Workers {
		workers.Go(func() {
			for {
				do, ok := f.timers.next(ctx)
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

// WaitRegistered waits until every node has been registered.
func (f *Fleet) WaitRegistered(ctx context.Context) error {
	select {
	case <-f.allRegistered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Changed makes a node request its allocations at once. Several calls in quick
// succession cause one request.
func (f *Fleet) Changed(nodeID string) {
	if n := f.byID[nodeID]; n != nil {
		n.pollSoon(0)
	}
}

// SetSilent disconnects the first count nodes and reconnects the others. A
// disconnected node sends no requests.
func (f *Fleet) SetSilent(count int) {
	for i, n := range f.nodes {
		was := n.silent.Swap(i < count)
		if was && i >= count {
			f.timers.add(time.Now(), n.lease)
		}
	}
}

// Stats returns the counts so far.
func (f *Fleet) Stats() FleetStats {
	c := &f.stats
	return FleetStats{
		Registered: c.registered.Load(), Heartbeats: c.heartbeats.Load(), Polls: c.polls.Load(), Reports: c.reports.Load(),
		Failures: c.failures.Load(), Started: c.started.Load(), Ended: c.ended.Load(),
	}
}

// failed records a failed request and returns the time of the next attempt.
func (f *Fleet) failed(ctx context.Context, what string, n *fleetNode, err error) time.Time {
	f.stats.failures.Add(1)
	if ctx.Err() == nil {
		f.log.DebugContext(ctx, "request of a simulated node failed", "request", what, "node_id", n.node.ID, "err", err)
	}
	return time.Now().Add(f.c.Retry + rand.N(f.c.Retry/2+1))
}
