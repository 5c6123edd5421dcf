package broker

import "github.com/cede-scheduler/cede/core/model"

// Ack ends a delivery: the evaluation was processed on the state at index snapshot.
// Waiting evaluations of the job that this snapshot covers are superseded; of newer
// ones, the best becomes ready. It returns ErrSnapshotTooOld if the snapshot lacks
// changes for which other evaluations were already cancelled.
func (b *Broker) Ack(evalID string, token Token, snapshot uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.outstanding(evalID, token)
	if err != nil {
		return err
	}
	if snapshot < e.cover() {
		return ErrSnapshotTooOld
	}
	j := e.job
	b.endLease(e)
	j.turn = nil
	if b.sheddingOff {
		b.promote(j)
	} else {
		b.cancelCovered(j, evalID, snapshot)
	}
	if again, index := e.requeued(snapshot); again != nil {
		b.restart(e, again, index)
	} else {
		b.release(e)
	}
	if b.total(StateReady) == 0 { // otherwise the next lease is near and may reuse the timer
		b.disarmIfIdle()
	}
	b.serveWaiters()
	return nil
}

// requeued returns the evaluation to queue after an ack, or nil: the copy given to
// Requeue, or a copy newer than the snapshot.
func (e *entry) requeued(snapshot uint64) (*model.Evaluation, uint64) {
	x := e.rare()
	again, index := x.requeue, uint64(0)
	if again != nil {
		index = again.ModifyIndex
	}
	if x.newer != nil && x.newerIndex > snapshot {
		if again == nil || supersedes(x.newer, again) {
			again = x.newer
		}
		index = max(index, x.newerIndex)
	}
	return again, index
}

// restart queues an acked evaluation as a new arrival, since it has had its turn.
func (b *Broker) restart(e *entry, ev *model.Evaluation, index uint64) {
	b.seq++
	b.counts[e.state][e.typ]--
	e.eval, e.typ, e.seq, e.index = ev, ev.Type, b.seq, index
	b.counts[e.state][e.typ]++
	e.token, e.attempts, e.more = 0, 0, nil
	e.job.maxIndex = max(e.job.maxIndex, index)
	b.enqueueEntry(e, b.now())
}

// Nack ends a delivery without a result. The evaluation is delivered again after a
// delay, or fails if it has reached the delivery limit.
func (b *Broker) Nack(evalID string, token Token) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.outstanding(evalID, token)
	if err != nil {
		return err
	}
	b.handleNack(e, b.now())
	b.disarmIfIdle()
	b.serveWaiters()
	return nil
}

// Requeue queues the given copy of a delivered evaluation once it is acked,
// whatever the snapshot of the Ack. After a Nack the copy is dropped, since the
// evaluation is delivered again.
func (b *Broker) Requeue(ev *model.Evaluation, token Token) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.outstanding(ev.ID, token)
	if err != nil {
		return err
	}
	e.own().requeue = ev
	return nil
}

// handleNack ends a delivery without a result. The turn passes to the best pending
// evaluation of the job instead of waiting for this one's delay, since each
// evaluation covers the whole job.
func (b *Broker) handleNack(e *entry, now int64) {
	j := e.job
	b.endLease(e)
	j.turn = nil
	e.token = 0
	if x := e.more; x != nil {
		if x.newer != nil {
			b.adopt(e, x.newer, x.newerIndex)
		}
		x.newer, x.newerIndex, x.requeue = nil, 0, nil
	}
	if int(e.attempts) >= b.cfg.DeliveryLimit {
		b.fail(e)
		return
	}
	if d := b.cfg.nackDelay(e.typ, int(e.attempts)); d > 0 {
		b.delay(e, StateBackoff, now, d)
		b.promote(j)
		return
	}
	e.at = now
	b.makePending(e)
	b.promote(j)
}
