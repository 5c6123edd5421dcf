package sim

import (
	"slices"

	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// end is the time at which an allocation has finished or has stopped.
type end struct {
	at    int64
	alloc string
	stop  bool // it was stopped
	// binding is true if alloc identifies an assignment of a binding.
	binding bool
}

// timers holds the future ends: by time, and among ends of one instant in the order
// in which they were added. If an allocation was evicted or lost meanwhile, its end
// is dropped when it is due.
type timers struct {
	ends  heapq.Heap[end]
	added uint64
}

func (a *timers) add(e end) {
	a.added++
	a.ends.Push(heapq.Key{A: uint64(e.at), B: a.added}, e)
}

// addBindingEnd adds the end of an assignment whose binding has a duration.
func (a *timers) addBindingEnd(snap *state.Snapshot, of *model.Assignment) {
	if b := snap.Binding(of.Binding); b != nil && b.Duration > 0 {
		a.add(end{at: max(of.StartTime+b.Duration, 0), alloc: of.ID, binding: true})
	}
}

// first returns the earliest time.
func (a *timers) first() (int64, bool) {
	if a.ends.Len() == 0 {
		return 0, false
	}
	return a.ends.Min().Value.at, true
}

// due removes and returns the ends of one instant in the order in which they were added.
func (a *timers) due(at int64) (ends []end) {
	for a.ends.Len() > 0 && a.ends.Min().Value.at <= at {
		ends = append(ends, a.ends.Pop().Value)
	}
	return ends
}

// waiting records which placements wait for which stopping allocations.
type waiting struct {
	victims map[string][]string // placement -> those still stopping
	waiters map[string][]string // stopping -> placements that wait for it
}

func newWaiting() waiting {
	return waiting{victims: map[string][]string{}, waiters: map[string][]string{}}
}

func (w *waiting) add(placement, stopping string) {
	w.victims[placement] = append(w.victims[placement], stopping)
	w.waiters[stopping] = append(w.waiters[stopping], placement)
}

// addMove makes the placements on the node of an allocation that is moved wait for its end.
func (w *waiting) addMove(g *model.CommitGroup, from *model.Allocation) {
	for _, a := range g.Placements {
		if a.NodeID == from.NodeID {
			w.add(a.ID, from.ID)
		}
	}
}

// gone returns the placements that waited for this allocation and for no other.
func (w *waiting) gone(stopping string) (ready []string) {
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

// inherit makes a placement wait for the victims of its victim: a victim that has not
// started holds capacity that its own victims have not released.
func (w *waiting) inherit(placement, victim string) {
	for _, stopping := range w.victims[victim] {
		w.add(placement, stopping)
	}
}

// scheduleEnd adds the end of an allocation that has started.
func (e *engine) scheduleEnd(a *model.Allocation) {
	if a.Group.Duration > 0 {
		e.timers.add(end{at: max(e.now(), a.StartTime+a.Group.Duration-a.SavedWork), alloc: a.ID})
	}
}
