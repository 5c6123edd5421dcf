package broker

import "github.com/cede-scheduler/cede/core/model"

// Ack ends a delivery: the work is done, on the state at index snapshot. Waiting
// evaluations of the job that this snapshot covers are needless now; of newer
// ones the best becomes ready. A snapshot that misses changes for which other
// evaluations were already cancelled is refused with ErrSnapshotTooOld.
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
	if b.keepAll {
		b.promote(j)
	} else {
		b.shed(j, evalID, snapshot)
	}
	if again, index := e.again(snapshot); again != nil {
		b.restart(e, again, index)
	} else {
		b.release(e)
	}
	if b.total(StateReady) == 0 { // else the next lease is near and may have the timer as it is
		b.disarmIfIdle()
	}
	b.serve()
	return nil
}

// again is what is left to do for an evaluation that was acked: what its worker
// asked for, or a copy newer than the work.
func (e *entry) again(snapshot uint64) (*model.Evaluation, uint64) {
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

// restart queues an acked evaluation as if it had just come. Its arrival is
// new, too: it has had its turn.
func (b *Broker) restart(e *entry, ev *model.Evaluation, index uint64) {
	b.seq++
	b.counts[e.state][e.typ]--
	e.eval, e.typ, e.seq, e.index = ev, ev.Type, b.seq, index
	b.counts[e.state][e.typ]++
	e.token, e.attempts, e.more = 0, 0, nil
	e.job.maxIndex = max(e.job.maxIndex, index)
	b.place(e, b.now())
}

// Nack ends a delivery that came to nothing. The evaluation is delivered again
// after a delay, or fails when it has been delivered too often.
func (b *Broker) Nack(evalID string, token Token) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.outstanding(evalID, token)
	if err != nil {
		return err
	}
	b.giveBack(e, b.now())
	b.disarmIfIdle()
	b.serve()
	return nil
}

// Requeue puts an evaluation that is being worked on back into the queue once it
// is acked, as the copy given says, whatever snapshot the Ack names. A Nack
// drops the copy: the evaluation comes again anyway.
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

// giveBack ends a delivery without success. The job's turn passes to the best
// pending evaluation rather than waiting for this one's delay: it sees
// everything that this one was made for.
func (b *Broker) giveBack(e *entry, now int64) {
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
