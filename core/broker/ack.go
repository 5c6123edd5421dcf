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
	b.due.endLease(e)
	j.turn = nil
	if b.sheddingOff {
		b.queue.promote(j)
	} else {
		b.queue.cancelCovered(&b.reap, j, evalID, snapshot)
	}
	if x := e.rare(); x.newer != nil && x.newerIndex > snapshot {
		b.restart(e, x.newer, x.newerIndex)
	} else {
		b.queue.release(e)
	}
	if b.queue.total(StateReady) == 0 { // otherwise the next lease is near and may reuse the timer
		b.due.disarmIfIdle(&b.queue.entrySet)
	}
	b.serveWaiters()
	return nil
}

// restart queues an acked evaluation as a new arrival, since it has had its turn.
func (b *Broker) restart(e *entry, ev *model.Evaluation, index uint64) {
	b.queue.replace(e, ev, index)
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
	b.due.disarmIfIdle(&b.queue.entrySet)
	b.serveWaiters()
	return nil
}

// handleNack ends a delivery without a result. The turn passes to the best pending
// evaluation of the job instead of waiting for this one's delay, since each
// evaluation covers the whole job.
func (b *Broker) handleNack(e *entry, now int64) {
	j := e.job
	b.due.endLease(e)
	j.turn = nil
	e.token = 0
	if x := e.more; x != nil {
		if x.newer != nil {
			b.queue.adopt(e, x.newer, x.newerIndex)
		}
		x.newer, x.newerIndex = nil, 0
	}
	if int(e.attempts) >= b.cfg.DeliveryLimit {
		b.reap.fail(&b.queue, e)
		return
	}
	if d := b.cfg.nackDelay(e.typ, int(e.attempts)); d > 0 {
		b.delay(e, StateBackoff, now, d)
		b.queue.promote(j)
		return
	}
	e.at = now
	b.queue.makePending(e)
	b.queue.promote(j)
}
