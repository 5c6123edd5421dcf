package sim

import (
	"container/heap"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// end is the time at which an allocation has finished or has stopped.
type end struct {
	at    int64
	seq   int // among ends of one instant, the order in which they were added
	alloc string
	stop  bool // it was stopped
	// binding is true if alloc identifies an assignment of a binding.
	binding bool
}

// timers holds the future ends. If an allocation was evicted or lost meanwhile, its
// end is dropped when it is due.
type timers struct {
	ends []end
	seq  int
}

var _ heap.Interface = (*timers)(nil)

func (a *timers) Len() int { return len(a.ends) }
func (a *timers) Less(i, j int) bool {
	if a.ends[i].at != a.ends[j].at {
		return a.ends[i].at < a.ends[j].at
	}
	return a.ends[i].seq < a.ends[j].seq
}
func (a *timers) Swap(i, j int) { a.ends[i], a.ends[j] = a.ends[j], a.ends[i] }
func (a *timers) Push(x any)    { a.ends = append(a.ends, x.(end)) }
func (a *timers) Pop() any {
	last := a.ends[len(a.ends)-1]
	a.ends = a.ends[:len(a.ends)-1]
	return last
}

func (a *timers) add(at int64, alloc string, stop bool) {
	a.seq++
	heap.Push(a, end{at: at, seq: a.seq, alloc: alloc, stop: stop})
}

// addBinding is add for an assignment.
func (a *timers) addBinding(at int64, assignment string, stop bool) {
	a.seq++
	heap.Push(a, end{at: at, seq: a.seq, alloc: assignment, stop: stop, binding: true})
}

// first returns the earliest time.
func (a *timers) first() (int64, bool) {
	if len(a.ends) == 0 {
		return 0, false
	}
	return a.ends[0].at, true
}

// due removes and returns the ends of one instant in the order in which they were added.
func (a *timers) due(at int64) (ends []end) {
	for len(a.ends) > 0 && a.ends[0].at <= at {
		ends = append(ends, heap.Pop(a).(end))
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
		e.timers.add(max(e.now(), a.StartTime+a.Group.Duration-a.SavedWork), a.ID, false)
	}
}
