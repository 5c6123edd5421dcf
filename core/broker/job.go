package broker

import "github.com/cede-scheduler/cede/core/model"

// job is what the broker knows of the evaluations of one job.
//
// Invariants: inflight and ready are never both set; while neither is set no
// entry of waiting is pending; a ready entry has at least the priority of every
// pending one.
type job struct {
	key      model.JobKey
	inflight *entry // delivered
	ready    *entry // in the ready heap
	waiting  list   // pending and backing off, by arrival
	members  int    // entries that point here, delayed ones included
	maxIndex uint64 // newest change that any of its evaluations stood for
}

// join makes e an evaluation of its job.
func (b *Broker) join(e *entry) {
	key := e.eval.JobKey()
	j := b.jobs[key]
	if j == nil {
		j = b.jobPool.get()
		j.key = key
		b.jobs[key] = j
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
		delete(b.jobs, j.key)
		*j = job{}
		b.jobPool.put(j)
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
	j := e.job
	switch {
	case j.inflight != nil:
		b.makePending(e)
	case j.ready == nil:
		b.makeReady(e)
	case e.eval.Priority > j.ready.eval.Priority:
		old := j.ready
		j.ready = nil
		b.makePending(old)
		b.makeReady(e)
	default:
		b.makePending(e)
	}
}

// promote gives the turn to the best pending entry when nobody has it.
func (b *Broker) promote(j *job) {
	if j.inflight != nil || j.ready != nil {
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
	if j.ready == nil || best == nil || best.eval.Priority <= j.ready.eval.Priority {
		return
	}
	old := j.ready
	j.ready = nil
	j.waiting.remove(best)
	b.makePending(old)
	b.makeReady(best)
}

// shed resolves what waits behind an evaluation that was just acked: what its
// snapshot covers is done; of the rest the best runs next and the others become
// needless, because the broker will name an index that covers them all.
func (b *Broker) shed(j *job, by string, snapshot uint64) {
	var best *entry
	for e := j.waiting.head; e != nil; {
		next := e.next
		switch {
		case e.index <= snapshot:
			b.cancel(e, by)
		case e.state == StatePending && (best == nil || better(e, best)):
			best = e
		}
		e = next
	}
	if best == nil {
		return
	}
	for e := j.waiting.head; e != nil; {
		next := e.next
		if e.state == StatePending && e != best {
			best.cover = max(best.cover, e.cover)
			b.cancel(e, best.eval.ID)
		}
		e = next
	}
	j.waiting.remove(best)
	b.makeReady(best)
}
