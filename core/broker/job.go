package broker

import "github.com/cede-scheduler/cede/core/model"

// A job holds the evaluations of one job or binding.
//
// Invariants: turn is ready or unacked; while it is nil, no entry of waiting is
// pending; a ready turn has at least the priority of every pending entry.
type job struct {
	turn     *entry // the evaluation that may be or is delivered
	waiting  list   // pending and backing off, by arrival
	maxIndex uint64 // newest index that any of its evaluations stands for

	sample  *model.Evaluation // any of them, for the key
	members uint32            // entries of this job, delayed ones included
	id      uint32            // in the arena
	hash    uint32            // of the key
}

func (j *job) isOf(ev *model.Evaluation) bool {
	return j.sample.JobID == ev.JobID && j.sample.Namespace == ev.Namespace
}

// joinJob adds e to its job.
func (b *Broker) joinJob(e *entry) {
	hash := b.hashJob(e.eval)
	var j *job
	if id := b.keys.find(hash, func(id uint32) bool { return b.jobs.at(id).isOf(e.eval) }); id != 0 {
		j = b.jobs.at(id)
	} else {
		id, j = b.jobs.get()
		j.id, j.hash, j.sample = id, hash, e.eval
		b.keys.insert(hash, id)
	}
	j.members++
	j.maxIndex = max(j.maxIndex, e.index)
	e.job = j
}

// leaveJob removes e from its job, and the job if it was the last.
func (b *Broker) leaveJob(e *entry) {
	j := e.job
	e.job = nil
	if j.members--; j.members == 0 {
		b.keys.remove(j.hash, j.id)
		id := j.id
		*j = job{}
		b.jobs.put(id)
	}
}

// hasPrecedence reports whether a takes the job's turn before o: by priority, then
// by the newer index.
func hasPrecedence(a, o *entry) bool {
	if a.eval.Priority != o.eval.Priority {
		return a.eval.Priority > o.eval.Priority
	}
	if a.index != o.index {
		return a.index > o.index
	}
	return a.seq > o.seq
}

func (j *job) bestPending() *entry {
	var best *entry
	for e := j.waiting.head; e != nil; e = e.next {
		if e.state == StatePending && (best == nil || hasPrecedence(e, best)) {
			best = e
		}
	}
	return best
}

// claimTurn gives e, which is in no list, the job's turn or appends it to the
// waiting list. Of equals, the ready one retains the turn: otherwise a job with a
// steady flow of evaluations would keep losing its position in the queue.
func (b *Broker) claimTurn(e *entry) {
	turn := e.job.turn
	switch {
	case turn == nil:
		b.makeReady(e)
	case turn.state == StateReady && e.eval.Priority > turn.eval.Priority:
		b.makePending(turn)
		b.makeReady(e)
	default:
		b.makePending(e)
	}
}

// promote gives the turn to the best pending entry, if the job has no turn.
func (b *Broker) promote(j *job) {
	if j.turn != nil {
		return
	}
	if best := j.bestPending(); best != nil {
		j.waiting.remove(best)
		b.makeReady(best)
	}
}

// passTurn passes the turn on if a pending entry has a higher priority than the
// ready one, whose priority was lowered.
func (b *Broker) passTurn(j *job) {
	best := j.bestPending()
	if best == nil || best.eval.Priority <= j.turn.eval.Priority {
		return
	}
	j.waiting.remove(best)
	b.makePending(j.turn)
	b.makeReady(best)
}

// cancelCovered resolves the entries that wait behind an acked evaluation. Those
// that its snapshot covers are cancelled. Of the rest, the best is next and the
// others are cancelled in its favor, because its delivery will name an index that
// covers them all.
func (b *Broker) cancelCovered(j *job, by string, snapshot uint64) {
	if j.waiting.head == nil {
		return
	}
	covered := &extra{coveredBy: by}
	j.waiting.each(func(e *entry) {
		if e.cover() <= snapshot {
			b.cancel(e, covered)
		}
	})
	best := j.bestPending()
	if best == nil {
		return
	}
	j.waiting.remove(best)
	covered = &extra{coveredBy: best.eval.ID}
	j.waiting.each(func(e *entry) {
		if e.state == StatePending {
			best.own().cover = max(best.cover(), e.cover())
			b.cancel(e, covered)
		}
	})
	b.makeReady(best)
}
