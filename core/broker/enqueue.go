package broker

import (
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Enqueue adds evaluations, in order. A newer copy of one that is held takes its
// place, with its new priority; a copy in a final status takes it out. On a
// disabled broker nothing happens, so every server may call it on apply.
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
	b.serve()
}

// enqueueUnblocked adds evaluations that a change at index set free. The
// deliveries will name at least that index, so that no worker looks at a
// snapshot from before the change.
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
	b.serve()
}

// Remove drops an evaluation that was cancelled or deleted in the state. One
// that is being worked on stays: its worker settles it.
func (b *Broker) Remove(evalID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := b.forget(evalID)
	b.serve()
	return ok
}

func (b *Broker) forget(evalID string) bool {
	e := b.lookup(evalID)
	if e == nil || e.state == StateUnacked {
		return false
	}
	b.detach(e)
	if e.job != nil {
		b.promote(e.job)
	}
	b.release(e)
	b.disarmIfIdle()
	return true
}

func (b *Broker) add(ev *model.Evaluation, index uint64, now int64) {
	if ev.Status.Final() {
		b.forget(ev.ID)
		return
	}
	hash := b.hashEval(ev.ID)
	if e := b.lookupHash(ev.ID, hash); e != nil {
		b.update(e, ev, index, now)
		return
	}
	e := b.admit(ev, hash, index)
	b.join(e)
	b.place(e, now)
}

// update brings a held evaluation up to date. Who waits keeps the place that
// its arrival earned and the attempts it has used up; who was given up starts
// afresh, because the copy says somebody still wants it.
func (b *Broker) update(e *entry, ev *model.Evaluation, index uint64, now int64) {
	if e.state == StateUnacked {
		e.keepNewer(ev, index)
		e.job.maxIndex = max(e.job.maxIndex, index)
		return
	}
	if !supersedes(ev, e.eval) && index <= e.index {
		return
	}
	switch e.state {
	case StateBackoff:
		b.adopt(e, ev, index)
	case StateReady:
		b.updateReady(e, ev, index, now)
	default: // pending, delayed, cancelable, failed
		b.detach(e)
		b.adopt(e, ev, index)
		if e.job == nil {
			e.attempts, e.more = 0, nil
			b.join(e)
		}
		b.place(e, now)
		b.disarmIfIdle()
	}
}

// updateReady keeps the job's turn with e unless the copy waits for a time or
// fell below another evaluation of the job.
func (b *Broker) updateReady(e *entry, ev *model.Evaluation, index uint64, now int64) {
	j := e.job
	b.adopt(e, ev, index)
	if b.untilDue(e) > 0 {
		j.turn = nil
		b.place(e, now)
		b.promote(j)
		return
	}
	b.makeReady(e)
	b.yield(j)
}

// keepNewer remembers the newest copy that arrived during the work. It decides
// at Ack whether the work covered it, and is what a Nack delivers again.
func (e *entry) keepNewer(ev *model.Evaluation, index uint64) {
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

// place finds the state for e, which is a member of its job and in no list.
func (b *Broker) place(e *entry, now int64) {
	if d := b.untilDue(e); d > 0 {
		b.delay(e, StateDelayed, now, d)
		return
	}
	e.at = now
	b.contend(e)
}

// untilDue is how long e must wait by its own wish. That is a time by the clock as it
// is now: where the clock was set since the broker was made, it would be off by that
// much from the nanoseconds that entries count.
func (b *Broker) untilDue(e *entry) time.Duration {
	if e.eval.WaitUntil == 0 {
		return 0
	}
	return time.Duration(e.eval.WaitUntil - b.cfg.Clock.Now().UnixNano())
}

// makeReady puts e into the ready heap; its job has no other turn.
func (b *Broker) makeReady(e *entry) {
	b.move(e, StateReady)
	e.job.turn = e
	h := &b.ready[e.typ]
	h.Push(e.readyKey(), e.ref())
	if h.Len() > 64+2*b.counts[StateReady][e.typ] {
		h.Filter(b.live)
	}
}

// makePending puts e behind the one that has the job's turn.
func (b *Broker) makePending(e *entry) {
	b.move(e, StatePending)
	e.job.waiting.push(e)
}

// detach takes e out of the list of its state; heaps notice by themselves.
func (b *Broker) detach(e *entry) {
	switch e.state {
	case StateReady:
		e.job.turn = nil
	case StatePending, StateBackoff:
		e.job.waiting.remove(e)
	case StateCancelable:
		b.cancels.remove(e)
	case StateFailed:
		b.fails.remove(e)
	}
	e.gen++
}
