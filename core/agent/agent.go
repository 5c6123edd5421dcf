package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Agent is the agent of one node.
type Agent struct {
	c      Config
	log    *slog.Logger
	disk   *disk
	node   Node
	secret string

	reports  *reporter
	unknown  chan struct{} // capacity 1: the node must be registered again
	sweepNow chan struct{} // capacity 1: an allocation has ended

	mu      sync.Mutex
	runners map[string]*runner // by allocation ID
	damaged damagedRecords
	leaving bool // the agent stops; it starts no allocation any more

	work sync.WaitGroup // runners that are active
}

// New returns an agent. It reads the node's identity, or creates one.
func New(c Config) (*Agent, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	d, err := openDisk(c.DataDir)
	if err != nil {
		return nil, err
	}
	id, err := d.identity(c.Logger)
	if err != nil {
		return nil, err
	}
	node := c.Node
	node.ID = id.ID
	node.Name = cmp.Or(node.Name, id.ID)
	a := &Agent{
		c: c, log: c.Logger.With("node_id", id.ID), disk: d, node: node, secret: id.Secret,
		unknown: make(chan struct{}, 1), sweepNow: make(chan struct{}, 1), runners: map[string]*runner{}, damaged: damagedRecords{},
	}
	a.reports = newReporter(c.ReportWindow, c.Retry, a.send, a.log)
	return a, nil
}

// NodeID returns the node's ID, which is stable as long as the data directory exists.
func (a *Agent) NodeID() string { return a.node.ID }

// Run works until ctx ends. Tasks that it started continue, unless Config.StopAll is
// set: Run then stops them and returns once the last one has ended and been reported.
func (a *Agent) Run(ctx context.Context) error {
	unlock, err := a.disk.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := a.restore(ctx); err != nil {
		return err
	}
	// Reports outlive ctx, so that the last ones are sent.
	reporting, stopReporting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReporting()
	var loops, reportLoop sync.WaitGroup
	reportLoop.Go(func() { a.reports.run(reporting) })
	registered := make(chan struct{})
	loops.Go(func() { a.keepLease(ctx, registered) })
	loops.Go(func() { a.sweep(ctx) })
	loops.Go(func() {
		select {
		case <-registered:
			a.watch(ctx)
		case <-ctx.Done():
		}
	})
	if a.c.Pressure != nil {
		loops.Go(func() { a.watchMemory(ctx) })
	}
	<-ctx.Done()
	loops.Wait()
	a.detachAll()
	a.work.Wait()
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReports)
	defer cancel()
	if a.c.StopAll {
		a.reports.flush(flush)
	}
	stopReporting()
	reportLoop.Wait()
	return nil
}

// lastReports is how long an agent that stops its tasks tries to report their end.
const lastReports = 2 * time.Second

// detachAll ends every runner, with its tasks or without them.
func (a *Agent) detachAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaving = true
	for _, r := range a.runners {
		if a.c.StopAll {
			r.stop("the agent is stopping", "")
		} else {
			r.detach()
		}
	}
}

// keepLease registers the node and renews its lease. It closes ready after the
// first registration.
func (a *Agent) keepLease(ctx context.Context, ready chan struct{}) {
	registered := false
	pause := newBackoff(a.c.Retry)
	for {
		var lease Lease
		var err error
		if registered {
			lease, err = a.c.Servers.Heartbeat(ctx, a.node.ID, a.secret)
		} else {
			lease, err = a.c.Servers.Register(ctx, &a.node, a.secret)
		}
		wait := pause.next()
		switch {
		case ctx.Err() != nil:
			return
		case registered && errors.Is(err, ErrUnknownNode):
			registered = false
			continue
		case err != nil:
			a.log.WarnContext(ctx, "lease not renewed; retrying", "registered", registered, "err", err)
		default:
			pause.reset()
			wait = halfTTL(lease.TTL)
			if !registered {
				registered = true
				a.log.InfoContext(ctx, "node registered", "ttl", lease.TTL)
				closeOnce(ready)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-a.unknown:
			registered = false
		case <-time.After(wait):
		}
	}
}

// halfTTL returns the delay before the next renewal: short enough that one lost
// request does not lose the lease, and jittered, so that nodes that registered
// together do not renew together.
func halfTTL(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		ttl = defaultTTL
	}
	half := ttl / 2
	return half - rand.N(half/5+1)
}

// defaultTTL applies if the server sends no TTL.
const defaultTTL = 10 * time.Second

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// watch requests allocations and reconciles the node with them.
func (a *Agent) watch(ctx context.Context) {
	var index uint64
	pause := newBackoff(a.c.Retry)
	for ctx.Err() == nil {
		got, err := a.c.Servers.Allocations(ctx, a.node.ID, a.secret, index, a.c.Wait)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrUnknownNode):
			a.registerAgain()
			sleep(ctx, pause.next())
		case err != nil:
			a.log.WarnContext(ctx, "failed to get allocations; retrying", "err", err)
			sleep(ctx, pause.next())
		case got.Index < index:
			// The index belongs to another history: the server is behind, or a
			// snapshot was restored. Its allocations count only after a request
			// without the old index.
			index = 0
			sleep(ctx, pause.next())
		default:
			pause.reset()
			index = max(got.Index, 1)
			a.assign(ctx, got)
		}
	}
}

// registerAgain makes the lease loop register the node.
func (a *Agent) registerAgain() {
	select {
	case a.unknown <- struct{}{}:
	default:
	}
}

// send sends the updates that the reporter has gathered.
func (a *Agent) send(ctx context.Context, updates []Update) error {
	err := a.c.Servers.Update(ctx, a.node.ID, a.secret, updates)
	if errors.Is(err, ErrUnknownNode) {
		a.registerAgain()
	}
	return err
}

// Stats returns the node's allocations by their last reported status.
func (a *Agent) Stats() map[Status]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := map[Status]int{}
	for _, r := range a.runners {
		counts[r.status]++
	}
	return counts
}

// backoff returns increasing delays.
type backoff struct{ first, now time.Duration }

func newBackoff(first time.Duration) *backoff { return &backoff{first: first} }

func (b *backoff) next() time.Duration {
	b.now = min(max(b.first, 2*b.now), 30*b.first)
	return b.now - rand.N(b.now/4+1)
}

func (b *backoff) reset() { b.now = 0 }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
