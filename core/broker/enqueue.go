package broker

import (
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Enqueue adds evaluations, in order. A newer copy of a held evaluation replaces
// it, with its new priority; a copy in a final status removes it. If the broker is
// disabled, nothing happens, so every server may call it when it applies an entry.
func (b *Broker) Enqueue(evals ...*model.Evaluation) {
	if len(evals) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.enabled {
		return
	}
	now := b.now()
	for _, ev := range evals {
		b.add(ev, ev.ModifyIndex, now)
	}
	b.serveWaiters()
}

// enqueueUnblocked adds evaluations that a change at index unblocked. Their
// deliveries name at least that index, so that no worker uses a snapshot from
// before the change.
func (b *Broker) enqueueUnblocked(index uint64, evals ...*model.Evaluation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.enabled {
		return
	}
	now := b.now()
	for _, ev := range evals {
		b.add(ev, max(ev.ModifyIndex, index), now)
	}
	b.serveWaiters()
}

// Remove drops an evaluation that was cancelled or deleted in the state, and
// reports whether it did. A delivered evaluation remains until it is acked or
// nacked.
func (b *Broker) Remove(evalID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := b.removeID(evalID)
	b.serveWaiters()
	return ok
}

func (b *Broker) removeID(evalID string) bool {
	e := b.queue.lookup(evalID)
	if e == nil || e.state == StateUnacked {
		return false
	}
	b.detach(e)
	if e.job != nil {
		b.queue.promote(e.job)
	}
	b.queue.release(e)
	b.due.disarmIfIdle(&b.queue.entrySet)
	return true
}

func (b *Broker) add(ev *model.Evaluation, index uint64, now int64) {
	if ev.Status.Final() {
		b.removeID(ev.ID)
		return
	}
	hash := b.queue.hashEval(ev.ID)
	if e := b.queue.lookupHash(ev.ID, hash); e != nil {
		b.update(e, ev, index, now)
		return
	}
	e := b.queue.admit(ev, hash, index)
	b.queue.joinJob(e)
	b.enqueueEntry(e, now)
}

// update replaces a held evaluation by a newer copy. A waiting evaluation retains
// its arrival and its attempts. A cancelable or failed one starts over, because the
// copy is evidence that it is still required.
func (b *Broker) update(e *entry, ev *model.Evaluation, index uint64, now int64) {
	if e.state == StateUnacked {
		e.recordNewer(ev, index)
		e.job.maxIndex = max(e.job.maxIndex, index)
		return
	}
	if !supersedes(ev, e.eval) && index <= e.index {
		return
	}
	switch e.state {
	case StateBackoff:
		b.queue.adopt(e, ev, index)
	case StateReady:
		b.updateReady(e, ev, index, now)
	default: // pending, delayed, cancelable, failed
		b.detach(e)
		b.queue.adopt(e, ev, index)
		if e.job == nil {
			e.attempts, e.more = 0, nil
			b.queue.joinJob(e)
		}
		b.enqueueEntry(e, now)
		b.due.disarmIfIdle(&b.queue.entrySet)
	}
}

// updateReady leaves the job's turn with e, unless the copy has a WaitUntil or a
// lower priority than another evaluation of the job.
func (b *Broker) updateReady(e *entry, ev *model.Evaluation, index uint64, now int64) {
	j := e.job
	b.queue.adopt(e, ev, index)
	if b.untilDue(e) > 0 {
		j.turn = nil
		b.enqueueEntry(e, now)
		b.queue.promote(j)
		return
	}
	b.queue.makeReady(e)
	b.queue.passTurn(j)
}

// recordNewer records the newest copy that arrived during processing. At Ack it
// determines whether the result covers it; after a Nack it is delivered instead.
func (e *entry) recordNewer(ev *model.Evaluation, index uint64) {
	known, at := e.eval, e.index
	if e.rare().newer != nil {
		known, at = e.more.newer, e.more.newerIndex
	}
	if !supersedes(ev, known) && index <= at {
		return
	}
	if !supersedes(ev, known) {
		ev = known
	}
	x := e.own()
	x.newer, x.newerIndex = ev, max(at, index)
}

// enqueueEntry determines the state of e, which is a member of its job and in no
// list.
func (b *Broker) enqueueEntry(e *entry, now int64) {
	if d := b.untilDue(e); d > 0 {
		b.delay(e, StateDelayed, now, d)
		return
	}
	e.at = now
	b.queue.claimTurn(e)
}

// untilDue returns how long e must wait for its WaitUntil. It uses the wall clock:
// if that was set since the broker was created, the nanoseconds of entries would be
// off by the difference.
func (b *Broker) untilDue(e *entry) time.Duration {
	if e.eval.WaitUntil == 0 {
		return 0
	}
	return time.Duration(e.eval.WaitUntil - b.cfg.Clock.Now().UnixNano())
}

// detach removes e from the list of its state. Heaps detect stale items by
// generation.
func (b *Broker) detach(e *entry) {
	switch e.state {
	case StateReady:
		e.job.turn = nil
	case StatePending, StateBackoff:
		e.job.waiting.remove(e)
	case StateCancelable:
		b.reap.cancels.remove(e)
	case StateFailed:
		b.reap.fails.remove(e)
	}
	e.gen++
}
