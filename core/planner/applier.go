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

// Config says what an applier works with.
type Config struct {
	Store             *state.Store
	Committer         Committer
	Queue             *Queue            // default: one of its own, disabled
	Clock             clock.Clock       // default: time is what the plans say it is
	PlacementVerifier PlacementVerifier // feasible.Verifier; default: none are checked
	RejectionTracker  RejectionTrackerConfig

	MaxPlans   int           // plans in one batch; default: 128
	MaxChanges int           // allocations and claims in a batch of several plans; default: 4096
	WaitState  time.Duration // how long a plan's snapshot index is waited for; default: 5s

	// OnVerified is told how long each check of a plan took, by Clock; nil: nobody is.
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

// Applier takes plans from a queue, checks them, and has committed what holds.
type Applier struct {
	cfg     Config
	queue   *Queue
	scratch Scratch
	tracker *tracker
	stats   counters

	// aside is a plan that was taken and has to wait for the next batch.
	aside *PendingPlan
}

// NewApplier returns an applier that does nothing yet. Config.Store and
// Config.Committer must be set.
func NewApplier(cfg Config) *Applier {
	cfg = cfg.withDefaults()
	return &Applier{cfg: cfg, queue: cfg.Queue, tracker: newTracker(cfg.RejectionTracker)}
}

// Queue is where Run and Step take plans from.
func (a *Applier) Queue() *Queue { return a.queue }

// Stats is what has been done so far.
func (a *Applier) Stats() Stats {
	s := a.stats.read()
	s.Depth = a.queue.Depth()
	return s
}

// Run applies plans until ctx ends, whose error it returns.
//
// The naive way is one plan at a time: check it on the newest state, write it
// to the log, wait, take the next. A write takes milliseconds (a majority must
// have it on disk), a check microseconds, so the applier would do nothing but
// wait, and plans that a thousand workers made side by side would queue up
// behind one disk.
//
// Instead, while one batch is being written the next is checked: on a branch
// of the state on which the batch in flight is applied already, plan by plan,
// each seeing those before it. When the write returns, everything checked
// meanwhile goes out as one entry. So the batch grows with the latency of the
// log, and a plan waits for two writes at worst, whatever the load. Each branch
// starts from the newest committed state, so what a check has not seen is at
// most what was committed during one write; a node that went away in that time
// is found when the entry is applied.
//
// It goes wrong when a write fails, or when apply drops a group. Then the
// branch shows a state that never was: it is thrown away, and every plan
// checked on it is checked again on the newest state before anything is
// written or anybody answered. Nobody is told a rejection either that rests on
// a write that may still fail.
func (a *Applier) Run(ctx context.Context) error {
	var flying *flight
	var next round
	defer func() {
		if flying != nil {
			<-flying.done
		}
		a.abandon(&next)
	}()
	next = a.newRound(nil)
	for {
		if err := a.gather(ctx, &next, flying); err != nil {
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
			a.settle(&next, CommitResult{}, nil)
			next = a.newRound(nil)
			continue
		}
		flown := next
		next = a.newRound(batch) // before the write, so that it cannot be in it
		flying = a.fly(ctx, flown, batch)
	}
}

// flight is a batch that is being written.
type flight struct {
	done chan struct{}
	// diverged, read after done, is whether the state is not what the branch
	// made of it.
	diverged bool
}

// gather checks plans until there is reason to write: something was checked
// and nothing is in flight any more, or the round is full. It returns without
// error and without a plan only when a flight ended.
func (a *Applier) gather(ctx context.Context, r *round, flying *flight) error {
	var landed chan struct{}
	if flying != nil {
		landed = flying.done
	}
	for {
		for !a.full(r) {
			p := a.take()
			if p == nil {
				break
			}
			if flying == nil && len(r.works) == 0 {
				*r = a.newRound(nil) // nothing depends on the old base
			}
			if !a.admit(ctx, r, p, flying == nil) {
				a.aside = p
				break
			}
		}
		if len(r.works) > 0 && flying == nil || a.full(r) || a.aside != nil {
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

func (a *Applier) take() *PendingPlan {
	if p := a.aside; p != nil {
		a.aside = nil
		return p
	}
	return a.queue.take()
}

func (a *Applier) full(r *round) bool {
	return len(r.works) >= a.cfg.MaxPlans || r.changes >= a.cfg.MaxChanges
}

// admit checks a plan in this round. It returns false when the plan was made
// on a state that the round does not know, and so is for the next round; a
// round that is still free to do so moves on to that state.
func (a *Applier) admit(ctx context.Context, r *round, p *PendingPlan, free bool) bool {
	if p.plan.SnapshotIndex > r.base.Index() {
		if !free || len(r.works) > 0 {
			return false
		}
		snap, err := a.waitState(ctx, p.plan.SnapshotIndex)
		if err != nil {
			a.queue.answer(p, nil, err)
			return true
		}
		*r = round{base: snap}
	}
	a.verify(r, p)
	return true
}

// waitState is the back-pressure on a leader that applies its log more slowly
// than followers plan on it.
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

// reverify checks a round again, on the newest state.
func (a *Applier) reverify(r *round) {
	works := r.works
	*r = a.newRound(nil)
	a.stats.add(func(s *Stats) { s.Reverified += uint64(len(works)) })
	for _, w := range works {
		a.verify(r, w.pending)
	}
}

// fly writes a batch without waiting for it.
func (a *Applier) fly(ctx context.Context, r round, batch *apply.Batch) *flight {
	f := &flight{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		outcome, err := a.commit(ctx, &r, batch)
		f.diverged = err != nil || len(outcome.Dropped) > 0
	}()
	return f
}

// abandon answers what was taken and will not be written.
func (a *Applier) abandon(r *round) {
	for i := range r.works {
		a.queue.answer(r.works[i].pending, nil, ErrStopped)
	}
	if a.aside != nil {
		a.queue.answer(a.aside, nil, ErrStopped)
		a.aside = nil
	}
}
