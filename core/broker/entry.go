package broker

import (
	"math"

	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

// State is where in the broker an evaluation is.
type State uint8

// The states. An evaluation is in one of them at a time.
const (
	StateUnknown    State = iota // the broker does not hold it
	StateReady                   // may be delivered
	StateUnacked                 // delivered and not yet settled
	StatePending                 // another evaluation of the job has the turn
	StateDelayed                 // its WaitUntil has not come
	StateBackoff                 // was nacked, waits to be delivered again
	StateCancelable              // another covers it; waits for the reaper
	StateFailed                  // reached the delivery limit; waits for the reaper
	StateBlocked                 // in Blocked: waits for room
	numStates       = iota
)

func (s State) String() string {
	return [...]string{"unknown", "ready", "unacked", "pending", "delayed", "backoff", "cancelable", "failed", "blocked"}[s]
}

// entry is what the broker knows of one evaluation.
type entry struct {
	eval *model.Evaluation
	job  *job // nil once cancelable or failed

	// gen goes up with every move; an item of a heap that carries another value
	// is stale. It survives reuse of the entry.
	gen uint64

	seq   uint64 // arrival; kept when a newer copy comes, or updates would cost the turn
	index uint64 // the newest change it stands for: ModifyIndex, or what unblocked it
	cover uint64 // the oldest snapshot it may be acked on; others were cancelled for it

	token   Token // while unacked
	expired Token // of the delivery that timed out last

	newer      *model.Evaluation // copy that arrived while unacked
	newerIndex uint64
	requeue    *model.Evaluation // to be put back on Ack, dropped on Nack

	coveredBy string // cancelable: the evaluation that did its work

	// due is when the lease or the delay ends, since is when it came or its delay
	// ended; both in nanoseconds since the broker was made.
	due, since int64

	prev, next *entry // in the one list that its state calls for

	attempts int32
	state    State
	typ      model.JobType // index of its counters; eval.Type at the last move
	paused   bool          // unacked without a running lease
}

// readyKey is the global order: higher priority, then older, then first come.
func (e *entry) readyKey() heapq.Key {
	return heapq.Key{
		A: uint64(math.MaxInt32 - int64(e.eval.Priority)),
		B: e.eval.CreateIndex,
		C: e.seq,
	}
}

// adopt takes over what ev and index tell beyond what the entry has.
func (e *entry) adopt(ev *model.Evaluation, index uint64) {
	if supersedes(ev, e.eval) {
		e.eval = ev
	}
	e.index = max(e.index, index)
	e.cover = max(e.cover, e.index)
}

// supersedes is whether a is a newer copy of b. A raised priority counts even
// where the writer forgot to raise the index.
func supersedes(a, b *model.Evaluation) bool {
	if a.ModifyIndex != b.ModifyIndex {
		return a.ModifyIndex > b.ModifyIndex
	}
	return a.Priority > b.Priority
}

// list is a queue of entries linked through themselves, so that leaving the
// middle costs nothing.
type list struct{ head, tail *entry }

func (l *list) push(e *entry) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
}

func (l *list) remove(e *entry) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// slab is how many entries or jobs are allocated at once.
const slab = 128

// pool hands out zeroed values and takes them back.
type pool[T any] struct {
	fresh []T
	used  []*T
}

func (p *pool[T]) get() *T {
	if n := len(p.used); n > 0 {
		v := p.used[n-1]
		p.used = p.used[:n-1]
		return v
	}
	if len(p.fresh) == 0 {
		p.fresh = make([]T, slab)
	}
	v := &p.fresh[0]
	p.fresh = p.fresh[1:]
	return v
}

func (p *pool[T]) put(v *T) { p.used = append(p.used, v) }
