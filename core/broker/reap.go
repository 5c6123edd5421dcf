package broker

import "github.com/cede-scheduler/cede/core/model"

// Cancellation is an evaluation that need not run, and the one whose run covers
// it. Whoever waits for the former follows SupersededBy.
type Cancellation struct {
	Eval         *model.Evaluation
	SupersededBy string
}

// PopCancelable hands out evaluations to be cancelled in the state, oldest
// first, at most limit of them (not positive: a batch). The broker forgets
// them; a caller that cannot write them down gives them back with
// ReturnCancelable, or loses leadership and with it all of this.
func (b *Broker) PopCancelable(limit int) []*Cancellation {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.batch(limit, StateCancelable)
	if n == 0 {
		return nil
	}
	all, out := make([]Cancellation, n), make([]*Cancellation, n)
	for i := range out {
		e := b.cancels.head
		b.cancels.remove(e)
		all[i] = Cancellation{e.eval, e.rare().coveredBy}
		out[i] = &all[i]
		b.release(e)
	}
	if b.cancels.head != nil {
		b.announce()
	}
	return out
}

// ReturnCancelable takes back what TakeCancelable handed out in vain.
func (b *Broker) ReturnCancelable(cs []*Cancellation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range cs {
		if e := b.readmit(c.Eval); e != nil {
			e.own().coveredBy = c.SupersededBy
			b.move(e, StateCancelable)
			b.cancels.push(e)
			b.announce()
		}
	}
}

// PopFailed hands out evaluations that were delivered too often, oldest first,
// at most limit of them (not positive: a batch). The caller marks each failed
// and makes a follow-up that waits, unless the job is gone.
func (b *Broker) PopFailed(limit int) []*model.Evaluation {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.batch(limit, StateFailed)
	if n == 0 {
		return nil
	}
	out := make([]*model.Evaluation, n)
	for i := range out {
		e := b.fails.head
		b.fails.remove(e)
		out[i] = e.eval
		b.release(e)
	}
	if b.fails.head != nil {
		b.announce()
	}
	return out
}

// ReturnFailed takes back what TakeFailed handed out in vain.
func (b *Broker) ReturnFailed(evals []*model.Evaluation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range evals {
		if e := b.readmit(ev); e != nil {
			b.move(e, StateFailed)
			b.fails.push(e)
			b.announce()
		}
	}
}

// Wakeup has a value when something may have become cancelable or failed since
// it was last received from. A reaper waits on it.
func (b *Broker) Wakeup() <-chan struct{} { return b.chores }

func (b *Broker) announce() {
	select {
	case b.chores <- struct{}{}:
	default:
	}
}

// batch is how many of those in state s a call with this limit takes.
func (b *Broker) batch(limit int, s State) int {
	if limit <= 0 {
		limit = b.cfg.ReaperBatch
	}
	return min(b.total(s), limit)
}

// readmit makes an entry outside of any job, unless a copy has come meanwhile.
func (b *Broker) readmit(ev *model.Evaluation) *entry {
	hash := b.hashEval(ev.ID)
	if !b.enabled || b.lookupHash(ev.ID, hash) != nil {
		return nil
	}
	return b.admit(ev, hash, ev.ModifyIndex)
}

// cancel hands an entry of its job's waiting list to the reaper. Those that one
// Ack cancels share what tells them who covers them.
func (b *Broker) cancel(e *entry, by *extra) {
	e.job.waiting.remove(e)
	b.leave(e)
	e.more = by
	b.move(e, StateCancelable)
	b.cancels.push(e)
	b.announce()
}

// fail hands an entry that is in no list to the reaper.
func (b *Broker) fail(e *entry) {
	b.promote(e.job)
	b.leave(e)
	b.move(e, StateFailed)
	b.fails.push(e)
	b.announce()
}
