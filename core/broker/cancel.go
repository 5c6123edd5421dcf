package broker

import "github.com/cede-scheduler/cede/core/model"

// A Cancellation is an evaluation that need not run, and the one that covers it. A
// client that waits for the former follows SupersededBy.
type Cancellation struct {
	Eval         *model.Evaluation
	SupersededBy string
}

// PopCancelable removes and returns evaluations to be cancelled in the state,
// oldest first, at most limit of them; if limit is not positive, a batch. A caller
// that cannot write them returns them with ReturnCancelable, or loses leadership
// and with it this broker.
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
		b.wakeReaper()
	}
	return out
}

// ReturnCancelable returns evaluations from PopCancelable that could not be
// written.
func (b *Broker) ReturnCancelable(cs []*Cancellation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range cs {
		if e := b.readmit(c.Eval); e != nil {
			e.own().coveredBy = c.SupersededBy
			b.move(e, StateCancelable)
			b.cancels.push(e)
			b.wakeReaper()
		}
	}
}

// PopFailed removes and returns evaluations that reached the delivery limit, oldest
// first, at most limit of them; if limit is not positive, a batch. The caller marks
// each failed and creates a delayed follow-up, unless the job is gone.
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
		b.wakeReaper()
	}
	return out
}

// ReturnFailed returns evaluations from PopFailed that could not be written.
func (b *Broker) ReturnFailed(evals []*model.Evaluation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range evals {
		if e := b.readmit(ev); e != nil {
			b.move(e, StateFailed)
			b.fails.push(e)
			b.wakeReaper()
		}
	}
}

// Wakeup returns a channel that receives a value if evaluations may have become
// cancelable or failed since the last receive.
func (b *Broker) Wakeup() <-chan struct{} { return b.wakeup }

func (b *Broker) wakeReaper() {
	select {
	case b.wakeup <- struct{}{}:
	default:
	}
}

// batch returns how many evaluations in state s a call with this limit removes.
func (b *Broker) batch(limit int, s State) int {
	if limit <= 0 {
		limit = b.cfg.ReaperBatch
	}
	return min(b.total(s), limit)
}

// readmit creates an entry outside of any job, or returns nil if a copy has arrived
// meanwhile.
func (b *Broker) readmit(ev *model.Evaluation) *entry {
	hash := b.hashEval(ev.ID)
	if !b.enabled || b.lookupHash(ev.ID, hash) != nil {
		return nil
	}
	return b.admit(ev, hash, ev.ModifyIndex)
}

// cancel makes an entry of its job's waiting list cancelable. Entries cancelled by
// one ack share the extra that names the covering evaluation.
func (b *Broker) cancel(e *entry, by *extra) {
	e.job.waiting.remove(e)
	b.leaveJob(e)
	e.more = by
	b.move(e, StateCancelable)
	b.cancels.push(e)
	b.wakeReaper()
}

// fail makes an entry that is in no list failed.
func (b *Broker) fail(e *entry) {
	b.promote(e.job)
	b.leaveJob(e)
	b.move(e, StateFailed)
	b.fails.push(e)
	b.wakeReaper()
}
