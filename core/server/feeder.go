package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// settleEvery is how often it is looked whether those who were woken have had
// their turn, while others wait for what they leave.
const settleEvery = 50 * time.Millisecond

// feeder brings what was applied to the broker and to the evaluations that
// wait, on the leader.
//
// The goroutine that applies must not wait for them, and a queue of its calls
// would grow without bound while a large Unblock is under way. So what was
// applied is added up: evaluations in their order, places that have room as a
// set, and of the state the newest. One goroutine takes the sum and works on it.
// Looking at a newer state than the one that an evaluation came with does no
// harm: a change is told at an index at or after its own, so that somebody may be
// woken once too often, and never once too seldom.
type feeder struct {
	s    *Server
	feed *worker.Feed

	mu    sync.Mutex
	takes bool   // this server leads
	from  uint64 // what was applied up to here the broker has from the state
	sum   applied
	more  chan struct{} // one slot

	// work is held while the broker is fed, so that a term does not end amid it;
	// term is whose broker it is, nil between terms.
	work sync.Mutex
	term *term
}

// applied is the sum of entries.
type applied struct {
	snap    *state.Snapshot // nil: nothing
	evals   []*model.Evaluation
	rooms   map[string]struct{}
	placed  map[string]struct{}
	changed uint64 // index of a change that may make room for anybody; 0: none
	whole   bool   // the state was replaced
}

func newFeeder(s *Server, feed *worker.Feed) *feeder {
	return &feeder{s: s, feed: feed, more: make(chan struct{}, 1)}
}

// note adds an entry to the sum.
func (f *feeder) note(a *replication.Applied) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.takes || a.Index <= f.from {
		return
	}
	f.sum.add(a)
	f.nudge()
}

func (f *feeder) nudge() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

func (p *applied) add(a *replication.Applied) {
	if a.Snap != nil {
		p.snap = a.Snap
	}
	if a.Entry == nil {
		p.whole = true
		return
	}
	if a.Result.Replayed {
		return // what its first entry did was fed then: by now others may wait for what it ended
	}
	p.evals = append(p.evals, a.Result.Evals...)
	p.rooms = addAll(p.rooms, a.Result.Freed)
	p.placed = addAll(p.placed, a.Result.Placed)
	switch a.Entry.Command.(type) {
	case *replication.SetConfig, *replication.ChangePolicy:
		p.changed = a.Index
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

// take fills the broker from the state and follows the state from there on.
func (f *feeder) take(t *term) {
	f.work.Lock()
	defer f.work.Unlock()
	f.term = t
	f.s.broker.Enable()
	f.restore()
}

// restore fills the broker, which is empty.
func (f *feeder) restore() {
	f.mu.Lock()
	snap := f.s.Snapshot()
	f.takes, f.from, f.sum = true, snap.Index(), applied{}
	f.mu.Unlock()
	f.configure(snap)
	f.feed.Restore(snap, f.s.writer.Now(), snap.RulesChangeIndex())
	f.nudge() // Restore may owe somebody
}

// give empties the broker and stops following.
func (f *feeder) give() {
	f.mu.Lock()
	f.takes, f.sum = false, applied{}
	f.mu.Unlock()
	f.work.Lock()
	defer f.work.Unlock()
	f.term = nil
	f.s.broker.Disable()
}

// run feeds until ctx ends.
func (f *feeder) run(ctx context.Context) {
	for {
		var settle <-chan struct{}
		stop := func() {}
		if f.round() {
			limited, cancel := clock.WithTimeout(ctx, f.s.cfg.Clock, settleEvery)
			settle, stop = limited.Done(), cancel
		}
		select {
		case <-f.more:
		case <-settle:
		case <-ctx.Done():
		}
		stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// round feeds what has come, and tells whether somebody is owed an answer.
func (f *feeder) round() (owes bool) {
	f.work.Lock()
	defer f.work.Unlock()
	f.mu.Lock()
	sum, takes := f.sum, f.takes
	f.sum = applied{}
	f.mu.Unlock()
	if !takes || f.term == nil {
		return false
	}
	if sum.whole {
		f.s.broker.Disable()
		f.s.broker.Enable()
		f.restore()
		return f.feed.Owes()
	}
	if sum.snap != nil {
		f.put(&sum)
	}
	return f.settle()
}

// put gives the sum to the broker and to those who wait.
func (f *feeder) put(sum *applied) {
	now := f.s.writer.Now()
	f.configure(sum.snap)
	needless := f.feed.Evals(sum.snap, now, sum.evals...)
	f.feed.Changed(sum.changed)
	f.feed.Room(sum.snap, now, slices.Sorted(maps.Keys(sum.rooms))...)
	f.feed.Placed(sum.snap, now, slices.Sorted(maps.Keys(sum.placed))...)
	f.feed.Budgets(sum.snap, now)
	if len(needless) > 0 {
		f.term.end(needless)
	}
}

// settle asks those again who were turned away in favour of others, once those
// have had their turn.
func (f *feeder) settle() (owes bool) {
	if !f.feed.Owes() {
		return false
	}
	stats := f.s.broker.Stats()
	if total := stats.Total(); total.Ready+total.Unacked == 0 {
		f.feed.Settle(f.s.Snapshot(), f.s.writer.Now())
	}
	return f.feed.Owes()
}

// configure brings the broker in line with what operators set.
func (f *feeder) configure(snap *state.Snapshot) {
	c := snap.Config()
	if c.BrokerPaused != f.s.broker.Paused() {
		if c.BrokerPaused {
			f.s.broker.Pause()
		} else {
			f.s.broker.Resume()
		}
	}
	f.s.broker.SetShedding(c.Shedding == nil || *c.Shedding)
}
