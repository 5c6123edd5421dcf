package broker

import "github.com/cede-scheduler/cede/core/model"

// job is what the broker knows of the evaluations of one job.
//
// Invariants: turn is ready or unacked; while it is nil no entry of waiting is
// pending; a ready turn has at least the priority of every pending entry.
type job struct {
	turn     *entry // the one evaluation that may run or does
	waiting  list   // pending and backing off, by arrival
	maxIndex uint64 // newest change that any of its evaluations stood for

	sample  *model.Evaluation // any of them: it has the key
	members uint32            // entries that point here, delayed ones included
	id      uint32            // in the arena
	hash    uint32            // of the key
}

func (j *job) isOf(ev *model.Evaluation) bool {
	return j.sample.JobID == ev.JobID && j.sample.Namespace == ev.Namespace
}

// join makes e an evaluation of its job.
func (b *Broker) join(e *entry) {
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

// leave ends that; a job without evaluations is forgotten.
func (b *Broker) leave(e *entry) {
	j := e.job
	e.job = nil
	if j.members--; j.members == 0 {
		b.keys.remove(j.hash, j.id)
		id := j.id
		*j = job{}
		b.jobs.put(id)
	}
}

// better is whether a should have the job's turn rather than o: the higher
// priority, then the one that stands for the newer change.
func better(a, o *entry) bool {
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
		if e.state == StatePending && (best == nil || better(e, best)) {
			best = e
		}
	}
	return best
}

// contend gives e, which is in no list, the job's turn or a place behind
// whoever has it. Of equals the one that is ready stays: a job whose
// evaluations keep coming must not lose its place in the queue to itself.
func (b *Broker) contend(e *entry) {
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

// promote gives the turn to the best pending entry when nobody has it.
func (b *Broker) promote(j *job) {
	if j.turn != nil {
		return
	}
	if best := j.bestPending(); best != nil {
		j.waiting.remove(best)
		b.makeReady(best)
	}
}

// yield passes the turn on when a pending entry has a higher priority than the
// ready one, which just lost some.
func (b *Broker) yield(j *job) {
	best := j.bestPending()
	if best == nil || best.eval.Priority <= j.turn.eval.Priority {
		return
	}
	j.waiting.remove(best)
	b.makePending(j.turn)
	b.makeReady(best)
}

// shed resolves what waits behind an evaluation that was just acked: what its
// snapshot covers is done, with all that it stands for; of the rest the best
// runs next and the others become needless, because the broker will name an
// index that covers them all.
func (b *Broker) shed(j *job, by string, snapshot uint64) {
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
