package broker

import (
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/internal/heapq"
)

// A dueQueue holds what ends by time: the leases of deliveries and the delays of
// evaluations. One timer serves them all.
type dueQueue struct {
	clock clock.Clock
	tick  func() // callback of the timer

	leases list // unacked entries with a running lease; all leases have the same length, so this is the order of expiry
	delays heapq.Heap[ref]

	timer    clock.Timer // nil until first needed
	armed    bool
	armedFor int64
}

func (d *dueQueue) reset() {
	d.disarm()
	d.delays.Reset()
	d.leases = list{}
}

// startLease lists e until its lease ends.
func (d *dueQueue) startLease(e *entry, until int64) {
	e.paused, e.at = false, until
	d.leases.push(e)
}

func (d *dueQueue) endLease(e *entry) {
	if !e.paused {
		d.leases.remove(e)
	}
	e.paused = false
}

// delay lists e until its delay ends.
func (d *dueQueue) delay(s *entrySet, e *entry, until int64) {
	e.at = until
	d.delays.Push(heapq.Key{A: uint64(e.at), B: e.seq}, e.ref())
	if d.delays.Len() > 64+2*(s.total(StateDelayed)+s.total(StateBackoff)) {
		d.delays.Filter(func(it *heapq.Item[ref]) bool { return !s.stale(it.Value) })
	}
}

// skim drops stale delays from the top; it returns false if there is none then.
func (d *dueQueue) skim(s *entrySet) bool {
	for d.delays.Len() > 0 && s.stale(d.delays.Min().Value) {
		d.delays.Pop()
	}
	return d.delays.Len() > 0
}

// popDelayed removes and returns the first entry with an ended delay, or nil.
func (d *dueQueue) popDelayed(s *entrySet, now int64) *entry {
	if !d.skim(s) || d.delays.Min().A > uint64(now) {
		return nil
	}
	return s.entries.at(d.delays.Pop().Value.id)
}

// arm makes the timer fire no later than the next lease or delay ends. It may fire
// early, if that entry is gone, and then sets itself again: moving it at every ack
// would cost more than the rare idle tick.
func (d *dueQueue) arm(s *entrySet, now int64) {
	due, ok := d.next(s)
	if !ok {
		d.disarm()
		return
	}
	if d.armed && d.armedFor <= due {
		return
	}
	wait := time.Duration(due - now)
	if d.timer == nil {
		d.timer = d.clock.AfterFunc(wait, d.tick)
	} else {
		d.timer.Reset(wait)
	}
	d.armed, d.armedFor = true, due
}

// next returns when the first lease or delay ends.
func (d *dueQueue) next(s *entrySet) (int64, bool) {
	due, ok := int64(0), false
	if d.skim(s) {
		due, ok = int64(d.delays.Min().A), true
	}
	if e := d.leases.head; e != nil && (!ok || e.at < due) {
		due, ok = e.at, true
	}
	return due, ok
}

// disarmIfIdle stops a timer that nothing waits for, so that a simulation does not
// run on to the end of a lease that was acked.
func (d *dueQueue) disarmIfIdle(s *entrySet) {
	if d.armed && d.leases.head == nil && !d.skim(s) {
		d.disarm()
	}
}

func (d *dueQueue) disarm() {
	if d.armed {
		d.timer.Stop()
		d.armed = false
	}
}

// delay makes e wait for d. An entry in backoff remains on its job's list, so that
// an ack of another may cover it. An entry with a WaitUntil does not: the passing
// of time may change what is required.
func (b *Broker) delay(e *entry, s State, now int64, d time.Duration) {
	b.queue.move(e, s)
	if s == StateBackoff {
		e.job.waiting.push(e)
	}
	b.due.delay(&b.queue.entrySet, e, now+int64(d))
	b.due.arm(&b.queue.entrySet, now)
}

// tick is the callback of the timer: leases first, then delays.
func (b *Broker) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.due.armed = false
	now := b.now()
	b.expireLeases(now)
	b.endDelays(now)
	b.due.arm(&b.queue.entrySet, now)
	b.serveWaiters()
}

func (b *Broker) endDelays(now int64) {
	for e := b.due.popDelayed(&b.queue.entrySet, now); e != nil; e = b.due.popDelayed(&b.queue.entrySet, now) {
		if e.state == StateBackoff {
			e.job.waiting.remove(e)
		}
		e.at = now
		b.queue.claimTurn(e)
	}
}
