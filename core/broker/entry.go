package broker

import (
	"math"

	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

// State is the state of an evaluation in the broker.
type State uint8

// The states. An evaluation is in exactly one of them.
const (
	StateUnknown    State = iota // the broker does not hold it
	StateReady                   // may be delivered
	StateUnacked                 // delivered, neither acked nor nacked
	StatePending                 // another evaluation of the job has the turn
	StateDelayed                 // its WaitUntil is in the future
	StateBackoff                 // nacked, waits for the next delivery
	StateCancelable              // another covers it; waits for the reaper
	StateFailed                  // reached the delivery limit; waits for the reaper
	StateBlocked                 // in Blocked: waits for capacity
	numStates       = iota
)

func (s State) String() string {
	return [...]string{"unknown", "ready", "unacked", "pending", "delayed", "backoff", "cancelable", "failed", "blocked"}[s]
}

// An entry is one evaluation in the broker. The fields that every evaluation needs
// come first and are small; the rest is allocated on demand.
type entry struct {
	eval *model.Evaluation
	job  *job // nil once cancelable or failed

	seq   uint64 // order of arrival; retained by newer copies, or updates would cost the turn
	index uint64 // the newest change it stands for: ModifyIndex, or the index that unblocked it
	token Token  // while unacked

	// at is when the lease or delay ends (unacked, delayed, backoff), or when the
	// entry arrived or its delay ended (ready, pending), in nanoseconds since the
	// broker was created.
	at int64

	id   uint32 // in the arena
	hash uint32 // of the evaluation's id

	// gen is incremented by every move. A heap item with another value is stale. It
	// survives reuse of the entry.
	gen uint32

	attempts int32
	state    State
	typ      model.JobType // of eval; index of its counters
	paused   bool          // unacked without a running lease

	prev, next *entry // in the list of its state
	more       *extra // nil: all zero
}

// extra holds the data that few entries have.
type extra struct {
	cover   uint64 // the oldest snapshot that may be acked: others were cancelled in favor of this
	expired Token  // of the last delivery that timed out

	newer      *model.Evaluation // copy that arrived while unacked
	newerIndex uint64

	coveredBy string // if cancelable: the evaluation that covers it
}

var noExtra extra

// rare returns the extra for reading.
func (e *entry) rare() *extra {
	if e.more == nil {
		return &noExtra
	}
	return e.more
}

// own returns the extra for writing.
func (e *entry) own() *extra {
	if e.more == nil {
		e.more = new(extra)
	}
	return e.more
}

// cover returns the oldest snapshot on which e may be acked.
func (e *entry) cover() uint64 { return max(e.index, e.rare().cover) }

// readyKey is the global order: higher priority, then older, then first come.
func (e *entry) readyKey() heapq.Key {
	return heapq.Key{
		A: uint64(math.MaxInt32 - int64(e.eval.Priority)),
		B: e.eval.ArrivalIndex(),
		C: e.seq,
	}
}

// adopt merges a newer copy and index into the entry.
func (s *entrySet) adopt(e *entry, ev *model.Evaluation, index uint64) {
	if supersedes(ev, e.eval) {
		s.counts[e.state][e.typ]--
		e.eval, e.typ = ev, ev.Type
		s.counts[e.state][e.typ]++
	}
	e.index = max(e.index, index)
	if e.job != nil {
		e.job.maxIndex = max(e.job.maxIndex, e.index)
	}
}

// supersedes reports whether a is a newer copy of b. A raised priority counts even
// if the index is the same.
func supersedes(a, b *model.Evaluation) bool {
	if a.ModifyIndex != b.ModifyIndex {
		return a.ModifyIndex > b.ModifyIndex
	}
	return a.Priority > b.Priority
}

// A list is a queue of entries linked through themselves, so that removal from the
// middle is cheap.
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

// each calls f for every entry; f may remove the entry it is called with.
func (l *list) each(f func(*entry)) {
	for e := l.head; e != nil; {
		next := e.next
		f(e)
		e = next
	}
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
