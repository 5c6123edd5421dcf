package sim

import (
	"container/heap"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// end is the moment at which an allocation is through: with its work, or with
// stopping.
type end struct {
	at    int64
	seq   int // of those of one moment, the one noted first comes first
	alloc string
	stop  bool // it was told to stop
	// binding is whether alloc names an assignment of a binding.
	binding bool
}

// agenda holds the ends to come. An end that no longer holds, because the
// allocation was evicted or lost meanwhile, is dropped when it is due.
type agenda struct {
	ends []end
	seq  int
}

var _ heap.Interface = (*agenda)(nil)

func (a *agenda) Len() int { return len(a.ends) }
func (a *agenda) Less(i, j int) bool {
	if a.ends[i].at != a.ends[j].at {
		return a.ends[i].at < a.ends[j].at
	}
	return a.ends[i].seq < a.ends[j].seq
}
func (a *agenda) Swap(i, j int) { a.ends[i], a.ends[j] = a.ends[j], a.ends[i] }
func (a *agenda) Push(x any)    { a.ends = append(a.ends, x.(end)) }
func (a *agenda) Pop() any {
	last := a.ends[len(a.ends)-1]
	a.ends = a.ends[:len(a.ends)-1]
	return last
}

func (a *agenda) add(at int64, alloc string, stop bool) {
	a.seq++
	heap.Push(a, end{at: at, seq: a.seq, alloc: alloc, stop: stop})
}

// addBinding is add for an assignment.
func (a *agenda) addBinding(at int64, assignment string, stop bool) {
	a.seq++
	heap.Push(a, end{at: at, seq: a.seq, alloc: assignment, stop: stop, binding: true})
}

// first is the earliest moment noted.
func (a *agenda) first() (int64, bool) {
	if len(a.ends) == 0 {
		return 0, false
	}
	return a.ends[0].at, true
}

// due takes the ends of one moment in the order in which they were noted.
func (a *agenda) due(at int64) (ends []end) {
	for len(a.ends) > 0 && a.ends[0].at <= at {
		ends = append(ends, heap.Pop(a).(end))
	}
	return ends
}

// waiting knows which placements wait for which stopping allocations.
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

// gone returns the placements that waited for an allocation, and for nothing
// else.
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

// inherit lets a placement wait for what its victim has been waiting for: a
// victim that had not started holds a place that others have yet to leave.
func (w *waiting) inherit(placement, victim string) {
	for _, stopping := range w.victims[victim] {
		w.add(placement, stopping)
	}
}

// scheduleEnd notes when an allocation that has started is through.
func (e *engine) scheduleEnd(a *model.Allocation) {
	if a.Group.Duration > 0 {
		e.agenda.add(max(e.now(), a.StartTime+a.Group.Duration-a.SavedWork), a.ID, false)
	}
}
