package lifetime

import (
	"slices"

	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

// An End is the time at which an allocation has finished or has stopped.
type End struct {
	At    int64  // Unix nanoseconds
	Alloc string // ID
	Stop  bool   // it was stopped
	// Binding is true if Alloc identifies an assignment of a binding.
	Binding bool
}

// Ends holds future ends: by time, and among ends of one instant in the order in which
// they were added. The caller drops the end of an allocation that was evicted or lost
// meanwhile when it is due. The zero value is ready.
type Ends struct {
	ends  heapq.Heap[End]
	added uint64
}

// Add adds an end.
func (e *Ends) Add(end End) {
	e.added++
	e.ends.Push(heapq.Key{A: uint64(end.At), B: e.added}, end)
}

// AddStarted adds the end of an allocation that has started and whose instance runs for a
// duration, unless that is 0. An end that is overdue is due at now.
func (e *Ends) AddStarted(a *model.Allocation, duration, now int64) {
	if duration > 0 {
		e.Add(End{At: max(now, a.StartTime+duration-a.SavedWork), Alloc: a.ID})
	}
}

// First returns the earliest time; it returns false if there is none.
func (e *Ends) First() (int64, bool) {
	if e.ends.Len() == 0 {
		return 0, false
	}
	return e.ends.Min().Value.At, true
}

// Due removes and returns the ends until an instant in the order in which they were added.
func (e *Ends) Due(at int64) (due []End) {
	for e.ends.Len() > 0 && e.ends.Min().Value.At <= at {
		due = append(due, e.ends.Pop().Value)
	}
	return due
}

// Waiting records which placements wait for which stopping allocations. Make it with
// NewWaiting.
type Waiting struct {
	victims map[string][]string // placement -> those still stopping
	waiters map[string][]string // stopping -> placements that wait for it
}

// NewWaiting returns a Waiting without placements.
func NewWaiting() Waiting {
	return Waiting{victims: map[string][]string{}, waiters: map[string][]string{}}
}

// Waits reports whether a placement waits for any allocation.
func (w *Waiting) Waits(placement string) bool { return len(w.victims[placement]) > 0 }

// Add makes a placement wait for a stopping allocation.
func (w *Waiting) Add(placement, stopping string) {
	w.victims[placement] = append(w.victims[placement], stopping)
	w.waiters[stopping] = append(w.waiters[stopping], placement)
}

// AddMove makes the placements on the node of an allocation that is moved wait for its end.
func (w *Waiting) AddMove(g *model.CommitGroup, from *model.Allocation) {
	for _, a := range g.Placements {
		if a.NodeID == from.NodeID {
			w.Add(a.ID, from.ID)
		}
	}
}

// Gone returns the placements that waited for this allocation and for no other.
func (w *Waiting) Gone(stopping string) (ready []string) {
	for _, p := range w.waiters[stopping] {
		w.victims[p] = slices.DeleteFunc(w.victims[p], func(id string) bool { return id == stopping })
		if len(w.victims[p]) == 0 {
			delete(w.victims, p)
			ready = append(ready, p)
		}
	}
	delete(w.waiters, stopping)
	return ready
}

// Inherit makes a placement wait for the victims of its victim: a victim that has not
// started holds capacity that its own victims have not released.
func (w *Waiting) Inherit(placement, victim string) {
	for _, stopping := range w.victims[victim] {
		w.Add(placement, stopping)
	}
}
