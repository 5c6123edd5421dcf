package broker

import (
	"time"

	"github.com/cede-scheduler/cede/core/internal/heapq"
)

func (b *Broker) live(it *heapq.Item[ref]) bool { return !b.stale(it.Value) }

// delay makes e wait for d. An entry in backoff remains on its job's list, so that
// an ack of another may cover it. An entry with a WaitUntil does not: the passing
// of time may change what is required.
func (b *Broker) delay(e *entry, s State, now int64, d time.Duration) {
	b.move(e, s)
	if s == StateBackoff {
		e.job.waiting.push(e)
	}
	e.at = now + int64(d)
	b.delays.Push(heapq.Key{A: uint64(e.at), B: e.seq}, e.ref())
	if b.delays.Len() > 64+2*(b.total(StateDelayed)+b.total(StateBackoff)) {
		b.delays.Filter(b.live)
	}
	b.arm(now)
}

// tick is the callback of the timer: leases first, then delays.
func (b *Broker) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = false
	now := b.now()
	b.expireLeases(now)
	b.endDelays(now)
	b.arm(now)
	b.serveWaiters()
}

func (b *Broker) endDelays(now int64) {
	for b.skim(&b.delays) && b.delays.Min().A <= uint64(now) {
		e := b.entries.at(b.delays.Pop().Value.id)
		if e.state == StateBackoff {
			e.job.waiting.remove(e)
		}
		e.at = now
		b.claimTurn(e)
	}
}

// skim drops stale items from the top; it returns false if the heap is empty then.
func (b *Broker) skim(h *heapq.Heap[ref]) bool {
	for h.Len() > 0 && b.stale(h.Min().Value) {
		h.Pop()
	}
	return h.Len() > 0
}

// arm makes the timer fire no later than the next lease or delay ends. It may fire
// early, if that entry is gone, and then sets itself again: moving it at every ack
// would cost more than the rare idle tick.
func (b *Broker) arm(now int64) {
	due, ok := b.nextDue()
	if !ok {
		b.disarm()
		return
	}
	if b.armed && b.armedFor <= due {
		return
	}
	d := time.Duration(due - now)
	if b.timer == nil {
		b.timer = b.cfg.Clock.AfterFunc(d, b.tick)
	} else {
		b.timer.Reset(d)
	}
	b.armed, b.armedFor = true, due
}

func (b *Broker) nextDue() (int64, bool) {
	due, ok := int64(0), false
	if b.skim(&b.delays) {
		due, ok = int64(b.delays.Min().A), true
	}
	if e := b.leases.head; e != nil && (!ok || e.at < due) {
		due, ok = e.at, true
	}
	return due, ok
}

// disarmIfIdle stops a timer that nothing waits for, so that a simulation does not
// run on to the end of a lease that was acked.
func (b *Broker) disarmIfIdle() {
	if b.armed && b.leases.head == nil && !b.skim(&b.delays) {
		b.disarm()
	}
}

func (b *Broker) disarm() {
	if b.armed {
		b.timer.Stop()
		b.armed = false
	}
}
