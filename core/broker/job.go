package broker

import (
	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

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
func (s *entrySet) joinJob(e *entry) {
	hash := s.hashJob(e.eval)
	var j *job
	if id := s.keys.find(hash, func(id uint32) bool { return s.jobs.at(id).isOf(e.eval) }); id != 0 {
		j = s.jobs.at(id)
	} else {
		id, j = s.jobs.get()
		j.id, j.hash, j.sample = id, hash, e.eval
		s.keys.insert(hash, id)
	}
	j.members++
	j.maxIndex = max(j.maxIndex, e.index)
	e.job = j
}

// leaveJob removes e from its job, and the job if it was the last.
func (s *entrySet) leaveJob(e *entry) {
	j := e.job
	e.job = nil
	if j.members--; j.members == 0 {
		s.keys.remove(j.hash, j.id)
		id := j.id
		*j = job{}
		s.jobs.put(id)
	}
}

// A jobQueue orders the evaluations: one of each job has the turn, and those turns are
// ready in the global order.
type jobQueue struct {
	entrySet
	ready [model.EvalTypes]heapq.Bucketed[ref]
}

func (q *jobQueue) reset() {
	q.entrySet.reset()
	for t := range q.ready {
		q.ready[t].Reset()
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
func (q *jobQueue) claimTurn(e *entry) {
	turn := e.job.turn
	switch {
	case turn == nil:
		q.makeReady(e)
	case turn.state == StateReady && e.eval.Priority > turn.eval.Priority:
		q.makePending(turn)
		q.makeReady(e)
	default:
		q.makePending(e)
	}
}

// promote gives the turn to the best pending entry, if the job has no turn.
func (q *jobQueue) promote(j *job) {
	if j.turn != nil {
		return
	}
	if best := j.bestPending(); best != nil {
		j.waiting.remove(best)
		q.makeReady(best)
	}
}

// passTurn passes the turn on if a pending entry has a higher priority than the
// ready one, whose priority was lowered.
func (q *jobQueue) passTurn(j *job) {
	best := j.bestPending()
	if best == nil || best.eval.Priority <= j.turn.eval.Priority {
		return
	}
	j.waiting.remove(best)
	q.makePending(j.turn)
	q.makeReady(best)
}

// cancelCovered resolves the entries that wait behind an acked evaluation. Those
// that its snapshot covers are cancelled. Of the rest, the best is next and the
// others are cancelled in its favor, because its delivery will name an index that
// covers them all.
func (q *jobQueue) cancelCovered(r *reapQueue, j *job, by string, snapshot uint64) {
	if j.waiting.head == nil {
		return
	}
	covered := &extra{coveredBy: by}
	j.waiting.each(func(e *entry) {
		if e.cover() <= snapshot {
			r.cancel(&q.entrySet, e, covered)
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
			r.cancel(&q.entrySet, e, covered)
		}
	})
	q.makeReady(best)
}

// makeReady pushes e to the ready heap and gives it the turn of its job.
func (q *jobQueue) makeReady(e *entry) {
	q.move(e, StateReady)
	e.job.turn = e
	h := &q.ready[e.typ]
	h.Push(e.readyKey(), e.ref())
	if h.Len() > 64+2*q.counts[StateReady][e.typ] {
		h.Filter(func(it *heapq.Item[ref]) bool { return !q.stale(it.Value) })
	}
}

// makePending appends e to the waiting list of its job.
func (q *jobQueue) makePending(e *entry) {
	q.move(e, StatePending)
	e.job.waiting.push(e)
}

// skim drops stale items from the top of a ready heap; it returns false if the heap
// is empty then.
func (q *jobQueue) skim(h *heapq.Bucketed[ref]) bool {
	for h.Len() > 0 && q.stale(h.Min().Value) {
		h.Pop()
	}
	return h.Len() > 0
}

// first returns the heap with the first root among the types in mask. Comparing
// roots makes the order global: a type never hides evaluations of another.
func (q *jobQueue) first(mask uint) *heapq.Bucketed[ref] {
	var first *heapq.Bucketed[ref]
	for t := range q.ready {
		h := &q.ready[t]
		if mask&(1<<t) == 0 || !q.skim(h) {
			continue
		}
		if first == nil || h.Min().Less(first.Min().Key) {
			first = h
		}
	}
	return first
}
