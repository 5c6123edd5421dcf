package agent

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timerQueue holds functions with their due times. Any number of goroutines may process it.
type timerQueue struct {
	mu    sync.Mutex
	items agendaHeap
	// moved is closed and replaced if an item becomes the earliest one.
	moved chan struct{}
}

type agendaItem struct {
	at time.Time
	do func(context.Context)
}

func newAgenda() *timerQueue { return &timerQueue{moved: make(chan struct{})} }

// add schedules a function.
func (a *timerQueue) add(at time.Time, do func(context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := len(a.items) == 0 || at.Before(a.items[0].at)
	heap.Push(&a.items, agendaItem{at, do})
	if first {
		close(a.moved)
		a.moved = make(chan struct{})
	}
}

// next waits until the first item is due and removes it. It returns false if ctx ended.
func (a *timerQueue) next(ctx context.Context) (do func(context.Context), ok bool) {
	for ctx.Err() == nil {
		a.mu.Lock()
		wait := time.Hour
		if len(a.items) > 0 {
			if wait = time.Until(a.items[0].at); wait <= 0 {
				item := heap.Pop(&a.items).(agendaItem)
				a.mu.Unlock()
				return item.do, true
			}
		}
		moved := a.moved
		a.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-moved:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil, false
}

type agendaHeap []agendaItem

func (h agendaHeap) Len() int           { return len(h) }
func (h agendaHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h agendaHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *agendaHeap) Push(x any)        { *h = append(*h, x.(agendaItem)) }

func (h *agendaHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = agendaItem{}
	*h = old[:len(old)-1]
	return last
}
