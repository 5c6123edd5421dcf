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
	return b.reap.popCancelable(&b.queue.entrySet, b.batch(limit, StateCancelable))
}

// ReturnCancelable returns evaluations from PopCancelable that could not be
// written.
func (b *Broker) ReturnCancelable(cs []*Cancellation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range cs {
		if e := b.readmit(c.Eval); e != nil {
			e.own().coveredBy = c.SupersededBy
			b.reap.addCancelable(&b.queue.entrySet, e)
		}
	}
}

// PopFailed removes and returns evaluations that reached the delivery limit, oldest
// first, at most limit of them; if limit is not positive, a batch. The caller marks
// each failed and creates a delayed follow-up, unless the job is gone.
func (b *Broker) PopFailed(limit int) []*model.Evaluation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reap.popFailed(&b.queue.entrySet, b.batch(limit, StateFailed))
}

// ReturnFailed returns evaluations from PopFailed that could not be written.
func (b *Broker) ReturnFailed(evals []*model.Evaluation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range evals {
		if e := b.readmit(ev); e != nil {
			b.reap.addFailed(&b.queue.entrySet, e)
		}
	}
}

// Wakeup returns a channel that receives a value if evaluations may have become
// cancelable or failed since the last receive.
func (b *Broker) Wakeup() <-chan struct{} { return b.reap.wakeup }

// batch returns how many evaluations in state s a call with this limit removes.
func (b *Broker) batch(limit int, s State) int {
	if limit <= 0 {
		limit = b.cfg.ReaperBatch
	}
	return min(b.queue.total(s), limit)
}

// readmit creates an entry outside of any job, or returns nil if a copy has arrived
// meanwhile.
func (b *Broker) readmit(ev *model.Evaluation) *entry {
	hash := b.queue.hashEval(ev.ID)
	if !b.enabled || b.queue.lookupHash(ev.ID, hash) != nil {
		return nil
	}
	return b.queue.admit(ev, hash, ev.ModifyIndex)
}

// A reapQueue holds cancelable and failed evaluations until the state records them.
type reapQueue struct {
	cancels list          // cancelable, oldest first
	fails   list          // failed, oldest first
	wakeup  chan struct{} // one slot; see Wakeup
}

func (r *reapQueue) wake() {
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

func (r *reapQueue) addCancelable(s *entrySet, e *entry) {
	s.move(e, StateCancelable)
	r.cancels.push(e)
	r.wake()
}

func (r *reapQueue) addFailed(s *entrySet, e *entry) {
	s.move(e, StateFailed)
	r.fails.push(e)
	r.wake()
}

// cancel makes an entry of its job's waiting list cancelable. Entries cancelled by
// one ack share the extra that names the covering evaluation.
func (r *reapQueue) cancel(s *entrySet, e *entry, by *extra) {
	e.job.waiting.remove(e)
	s.leaveJob(e)
	e.more = by
	r.addCancelable(s, e)
}

// fail makes an entry that is in no list failed.
func (r *reapQueue) fail(q *jobQueue, e *entry) {
	q.promote(e.job)
	q.leaveJob(e)
	r.addFailed(&q.entrySet, e)
}

// popCancelable removes and returns the n oldest cancelable evaluations.
func (r *reapQueue) popCancelable(s *entrySet, n int) []*Cancellation {
	if n == 0 {
		return nil
	}
	all, out := make([]Cancellation, n), make([]*Cancellation, n)
	for i := range out {
		e := r.cancels.head
		r.cancels.remove(e)
		all[i] = Cancellation{e.eval, e.rare().coveredBy}
		out[i] = &all[i]
		s.release(e)
	}
	if r.cancels.head != nil {
		r.wake()
	}
	return out
}

// popFailed removes and returns the n oldest failed evaluations.
func (r *reapQueue) popFailed(s *entrySet, n int) []*model.Evaluation {
	if n == 0 {
		return nil
	}
	out := make([]*model.Evaluation, n)
	for i := range out {
		e := r.fails.head
		r.fails.remove(e)
		out[i] = e.eval
		s.release(e)
	}
	if r.fails.head != nil {
		r.wake()
	}
	return out
}
