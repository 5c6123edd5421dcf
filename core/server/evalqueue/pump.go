package evalqueue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// deferredCheck is the interval at which the pump checks whether the evaluations that were
// unblocked have been processed, while others are deferred behind them.
const deferredCheck = 50 * time.Millisecond

// A Pump passes the changes of the state to the broker and the blocked evaluations, on the
// leader.
//
// The goroutine that applies the log must not wait for that, and a queue of its calls would
// grow without bound during a large unblock. So applied entries are added up: evaluations
// in their order, nodes with free capacity as a set, and the newest state. One goroutine
// takes the sum and processes it. A newer state than that of an evaluation does no harm: a
// change is offered at its own index or a later one, so that an evaluation may be unblocked
// once too often, but never once too seldom.
type Pump struct {
	broker *broker.Broker
	feed   *worker.Feed
	writer *logwriter.Writer
	clock  clock.Clock

	mu        sync.Mutex
	observing bool   // this server leads
	from      uint64 // entries up to here were read from the state
	sum       appliedSum
	more      chan struct{} // one slot: sum is not empty

	// feeding is held while the broker is fed, so that a term does not end meanwhile.
	feeding    sync.Mutex
	onNeedless func([]*model.Evaluation) // of the current term; nil between terms
}

// appliedSum is the sum of applied entries.
type appliedSum struct {
	snap     *state.Snapshot // nil: nothing was applied
	evals    []*model.Evaluation
	freed    map[string]struct{} // nodes and clusters with free capacity
	placed   map[string]struct{} // nodes with new labels
	changed  uint64              // index of a change that may unblock any evaluation; 0: none
	weights  uint64              // index of a change of the weights of namespaces; 0: none
	replaced bool                // the state was replaced by a snapshot
}

// NewPump returns a Pump that ignores entries before Start.
func NewPump(feed *worker.Feed, w *logwriter.Writer, c clock.Clock) *Pump {
	return &Pump{broker: feed.Broker, feed: feed, writer: w, clock: c, more: make(chan struct{}, 1)}
}

// Observe adds an entry to the sum.
func (p *Pump) Observe(a *replication.Applied) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.observing || a.Index <= p.from {
		return
	}
	p.sum.add(a)
	p.wakeUp()
}

func (p *Pump) wakeUp() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

func (s *appliedSum) add(a *replication.Applied) {
	if a.Snap != nil {
		s.snap = a.Snap
	}
	if a.Entry == nil {
		s.replaced = true
		return
	}
	if a.Result.Replayed {
		return // its first entry was fed then, and evaluations may be blocked again since
	}
	s.evals = append(s.evals, a.Result.Evals...)
	s.freed = addAll(s.freed, a.Result.Freed)
	s.freed = addAll(s.freed, a.Result.Left) // frees nothing, but no longer limits hard spreads
	s.placed = addAll(s.placed, a.Result.Placed)
	switch c := a.Entry.Command.(type) {
	case *replication.SetConfig, *replication.ChangePolicy:
		s.changed = a.Index
	case *replication.UpsertNamespace:
		if n := a.Snap.Namespace(c.Namespace.Name); n != nil && n.WeightIndex == a.Index {
			s.weights = a.Index
		}
	}
}

func addAll(set map[string]struct{}, ids []string) map[string]struct{} {
	if set == nil && len(ids) > 0 {
		set = map[string]struct{}{}
	}
	for _, id := range ids {
		set[id] = struct{}{}
	}
	return set
}

// Start enables the broker, fills it from the state, and observes entries from there on.
// onNeedless is called with evaluations that have become needless and must be written; it
// must not block.
func (p *Pump) Start(onNeedless func([]*model.Evaluation)) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.onNeedless = onNeedless
	p.broker.Enable()
	p.restore()
}

// restore fills the broker, which is empty.
func (p *Pump) restore() {
	p.mu.Lock()
	snap := p.writer.Snapshot()
	p.observing, p.from, p.sum = true, snap.Index(), appliedSum{}
	p.mu.Unlock()
	p.configure(snap)
	broker.Batch(p.broker, func() { p.feed.Restore(snap, p.writer.Now(), snap.RulesChangeIndex(), nil) })
	p.wakeUp() // Restore may have deferred evaluations
}

// Stop disables the broker and ignores further entries.
func (p *Pump) Stop() {
	p.mu.Lock()
	p.observing, p.sum = false, appliedSum{}
	p.mu.Unlock()
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.onNeedless = nil
	p.broker.Disable()
}

// Run feeds the broker until ctx ends.
func (p *Pump) Run(ctx context.Context) {
	for {
		var check <-chan struct{}
		stop := func() {}
		if p.feedOnce() {
			limited, cancel := clock.WithTimeout(ctx, p.clock, deferredCheck)
			check, stop = limited.Done(), cancel
		}
		select {
		case <-p.more:
		case <-check:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// feedOnce processes the sum, and reports whether evaluations are deferred.
func (p *Pump) feedOnce() (hasDeferred bool) {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	p.mu.Lock()
	sum, observing := p.sum, p.observing
	p.sum = appliedSum{}
	p.mu.Unlock()
	if !observing || p.onNeedless == nil {
		return false
	}
	if sum.replaced {
		p.broker.Disable()
		p.broker.Enable()
		p.restore()
		return p.feed.HasDeferred()
	}
	if sum.snap != nil {
		broker.Batch(p.broker, func() { p.process(&sum) })
	}
	return p.retryDeferred()
}

// process passes the sum to the broker and the blocked evaluations. It must run as one batch
// of the broker: an entry may create evaluations and unblock others, on several nodes.
func (p *Pump) process(sum *appliedSum) {
	now := p.writer.Now()
	p.configure(sum.snap)
	needless := p.feed.Evals(sum.snap, now, sum.evals...)
	p.feed.UnblockAll(sum.changed)
	p.feed.WeightsChanged(sum.weights)
	p.feed.Freed(sum.snap, now, slices.Sorted(maps.Keys(sum.freed))...)
	p.feed.Placed(sum.snap, now, slices.Sorted(maps.Keys(sum.placed))...)
	p.feed.Budgets(sum.snap, now)
	if len(needless) > 0 {
		p.onNeedless(needless)
	}
}

// retryDeferred offers capacity to deferred evaluations once those that were unblocked
// before them have been processed. It reports whether some are still deferred.
func (p *Pump) retryDeferred() (hasDeferred bool) {
	if !p.feed.HasDeferred() {
		return false
	}
	stats := p.broker.Stats()
	if total := stats.Total(); total.Ready+total.Unacked == 0 {
		broker.Batch(p.broker, func() { p.feed.RetryDeferred(p.writer.Snapshot(), p.writer.Now()) })
	}
	return p.feed.HasDeferred()
}

// configure applies the scheduler configuration to the broker.
func (p *Pump) configure(snap *state.Snapshot) {
	c := snap.Config()
	if c.BrokerPaused != p.broker.Paused() {
		if c.BrokerPaused {
			p.broker.Pause()
		} else {
			p.broker.Resume()
		}
	}
	p.broker.SetShedding(c.Shedding == nil || *c.Shedding)
}
