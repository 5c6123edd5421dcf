package planner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Config configures an Applier.
type Config struct {
	Store             *state.Store
	Committer         Committer
	Queue             *Queue            // default: a new, disabled queue
	Clock             clock.Clock       // default: the time of each plan is used
	PlacementVerifier PlacementVerifier // default: no rules are checked
	RejectionTracker  RejectionTrackerConfig

	MaxPlans   int           // plans in one batch; default: 128
	MaxChanges int           // allocations and claims in a batch of several plans; default: 4096
	WaitState  time.Duration // how long to wait for a plan's snapshot index; default: 5s

	// OnVerified is called with the duration of each verification, measured by
	// Clock; nil disables it.
	OnVerified func(time.Duration)
}

func (c Config) withDefaults() Config {
	if c.Queue == nil {
		c.Queue = NewQueue()
	}
	if c.MaxPlans <= 0 {
		c.MaxPlans = 128
	}
	if c.MaxChanges <= 0 {
		c.MaxChanges = 4096
	}
	if c.WaitState <= 0 {
		c.WaitState = 5 * time.Second
	}
	return c
}

// An Applier takes plans from a queue, verifies them, and commits the groups that hold.
// Only the queue and the counters are shared with other goroutines. scratch, tracker
// and deferred belong to the goroutine of Run, Step or ApplyOne.
type Applier struct {
	cfg     Config
	queue   *Queue
	scratch Scratch
	tracker *tracker
	stats   counters

	// deferred is a plan that was taken from the queue and waits for the next
	// batch.
	deferred *PendingPlan
}

// NewApplier returns an applier that is not running. Config.Store and
// Config.Committer are required.
func NewApplier(cfg Config) *Applier {
	cfg = cfg.withDefaults()
	return &Applier{cfg: cfg, queue: cfg.Queue, tracker: newTracker(cfg.RejectionTracker)}
}

// Queue returns the queue from which Run and Step take plans.
func (a *Applier) Queue() *Queue { return a.queue }

// Stats returns the counters of the applier.
func (a *Applier) Stats() Stats {
	s := a.stats.read()
	s.Depth = a.queue.Depth()
	return s
}

// Run applies plans until ctx is done, and returns its error.
//
// The naive way is one plan at a time: check it on the newest state, write it to
// the log, wait, take the next. A write takes milliseconds (a majority must have it
// on disk), a check microseconds. The applier would spend its time waiting, and
// plans that a thousand workers made concurrently would queue up behind one disk.
//
// Instead, while one batch is being written, the next is checked: on a branch of
// the state to which the batch in flight is already applied, plan by plan, each on
// top of those before it. When the write returns, everything that was checked
// meanwhile is written as one entry. So the batch grows with the latency of the
// log, and a plan waits for two writes at most, whatever the load. Each branch
// starts from the newest committed state, so a check misses at most what was
// committed during one write. If a node was lost in that time, applying the entry
// drops its groups.
//
// If a write fails, or applying it drops a group, the branch shows a state that
// never existed. It is discarded, and every plan checked on it is checked again on
// the newest state before anything is written or answered. Rejections are held back
// as well, since they may depend on a write that can still fail.
func (a *Applier) Run(ctx context.Context) error {
	var flying *inflightCommit
	var next batchBuilder
	defer func() {
		// The write in flight is not canceled. If the next applier started earlier, it
		// would verify plans on a state that lacks this batch.
		if flying != nil {
			<-flying.done
		}
		a.abandon(&next)
	}()
	next = a.newBatch(nil)
	for {
		if err := a.fillBatch(ctx, &next, flying); err != nil {
			return err
		}
		if flying != nil {
			<-flying.done
			if flying.diverged {
				a.reverify(&next)
			}
			flying = nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		batch := a.seal(&next)
		if batch == nil {
			a.respond(&next, CommitResult{}, nil)
			next = a.newBatch(nil)
			continue
		}
		// The copy belongs to the goroutine that writes it.
		flown := next
		next = a.newBatch(batch) // before the write, so that the base cannot include it
		flying = a.commitAsync(ctx, flown, batch)
	}
}

// An inflightCommit is a batch that is being written.
type inflightCommit struct {
	done chan struct{}
	// diverged is valid after done is closed. It reports whether the state differs
	// from the branch.
	diverged bool
}

// fillBatch verifies plans until there is a reason to write: at least one was
// verified and nothing is in flight any more, or the batch is full. It returns
// without error and without a plan only if a commit in flight ended.
func (a *Applier) fillBatch(ctx context.Context, r *batchBuilder, flying *inflightCommit) error {
	// A nil channel blocks for ever: if nothing is in flight, only ctx and the queue
	// end the wait.
	var landed chan struct{}
	if flying != nil {
		landed = flying.done
	}
	for {
		for !a.full(r) {
			p := a.next()
			if p == nil {
				break
			}
			if flying == nil && len(r.items) == 0 {
				*r = a.newBatch(nil) // no verified plan depends on the old base
			}
			if !a.admit(ctx, r, p, flying == nil) {
				a.deferred = p
				break
			}
		}
		if len(r.items) > 0 && flying == nil || a.full(r) || a.deferred != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-landed:
			return nil
		case <-a.queue.more:
		}
	}
}

// next returns the deferred plan, or else the first of the queue, or nil. A deferred
// plan comes first, independent of its priority, because it was at the head when it was
// taken.
func (a *Applier) next() *PendingPlan {
	if p := a.deferred; p != nil {
		a.deferred = nil
		return p
	}
	return a.queue.pop()
}

func (a *Applier) full(r *batchBuilder) bool {
	return len(r.items) >= a.cfg.MaxPlans || r.changes >= a.cfg.MaxChanges
}

// admit verifies a plan in this batch. It returns false if the plan was made on a state
// that the batch does not include, so that it must wait for the next batch. A batch
// that is still empty moves on to that state. free reports whether nothing is in
// flight. Only then can the batch be rebased: a newer base may include the batch in
// flight, which would then be applied twice.
func (a *Applier) admit(ctx context.Context, r *batchBuilder, p *PendingPlan, free bool) bool {
	if p.plan.SnapshotIndex > r.base.Index() {
		if !free || len(r.items) > 0 {
			return false
		}
		snap, err := a.waitState(ctx, p.plan.SnapshotIndex)
		if err != nil {
			a.queue.respond(p, nil, err)
			return true
		}
		*r = batchBuilder{base: snap}
	}
	a.verify(r, p)
	return true
}

// waitState applies back-pressure if the leader applies its log more slowly than
// followers plan on it. It returns ErrStateBehind if the state does not reach the index
// within Config.WaitState, and ErrStopped if ctx ends first.
func (a *Applier) waitState(ctx context.Context, index uint64) (*state.Snapshot, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.cfg.WaitState, ErrStateBehind)
	defer cancel()
	snap, err := a.cfg.Store.WaitIndex(ctx, index)
	switch {
	case err == nil:
		return snap, nil
	case errors.Is(context.Cause(ctx), ErrStateBehind):
		return nil, fmt.Errorf("%w: at %d, the plan at %d", ErrStateBehind, a.cfg.Store.Snapshot().Index(), index)
	default:
		return nil, ErrStopped
	}
}

// reverify verifies the plans of a batch again on the newest state. A plan that is
// malformed on that state is answered and leaves the batch; all others retain their
// order.
func (a *Applier) reverify(r *batchBuilder) {
	works := r.items
	*r = a.newBatch(nil)
	a.stats.add(func(s *Stats) { s.Reverified += uint64(len(works)) })
	for _, w := range works {
		a.verify(r, w.pending)
	}
}

// commitAsync writes a batch without waiting for it. A dropped group diverges as a
// failure does: the branch of the next batch includes it. The goroutine answers the
// plans itself, so a slow verification does not delay them.
func (a *Applier) commitAsync(ctx context.Context, r batchBuilder, batch *apply.Batch) *inflightCommit {
	f := &inflightCommit{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		outcome, err := a.commit(ctx, &r, batch)
		f.diverged = err != nil || len(outcome.Dropped) > 0
	}()
	return f
}

// abandon answers the plans that were taken and will not be written. Their submitters
// receive ErrStopped and may submit them to the next leader, since nothing of them is
// in the log.
func (a *Applier) abandon(r *batchBuilder) {
	for i := range r.items {
		a.queue.respond(r.items[i].pending, nil, ErrStopped)
	}
	if a.deferred != nil {
		a.queue.respond(a.deferred, nil, ErrStopped)
		a.deferred = nil
	}
}
