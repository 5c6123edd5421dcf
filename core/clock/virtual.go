package clock

import (
	"container/heap"
	"sync"
	"time"
)

// A Virtual is a clock that stands still until AdvanceTo moves it. Timers fire in
// order of their time; timers of the same time fire in the order in which they were
// started or last reset. The same calls result in the same run.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	seq    uint64
	timers timerHeap
}

var _ Clock = (*Virtual)(nil)

// NewVirtual returns a clock that is set to start.
func NewVirtual(start time.Time) *Virtual { return &Virtual{now: start} }

// Now returns the time of the clock; within a callback, the time for which its
// timer was set.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// AfterFunc starts a timer. It does not fire before the next AdvanceTo.
func (v *Virtual) AfterFunc(d time.Duration, f func()) Timer {
	t := &virtualTimer{clock: v, call: f, pos: notPending}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.start(t, d)
	return t
}

// Next returns when the next pending timer fires; it returns false if there is
// none.
func (v *Virtual) Next() (time.Time, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.timers) == 0 {
		return time.Time{}, false
	}
	return v.timers[0].at, true
}

// AdvanceTo fires every timer that is due at or before t, including those that
// callbacks start, and sets the clock to t. If t is in the past, it fires what is
// due now and leaves the clock as it is.
func (v *Virtual) AdvanceTo(t time.Time) {
	for {
		call := v.popDue(t)
		if call == nil {
			return
		}
		call()
	}
}

// popDue takes the next due timer and sets the clock to its time; when none is
// left the clock is at t.
func (v *Virtual) popDue(t time.Time) func() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.Before(v.now) {
		t = v.now
	}
	if len(v.timers) == 0 || v.timers[0].at.After(t) {
		v.now = t
		return nil
	}
	due := heap.Pop(&v.timers).(*virtualTimer)
	if due.at.After(v.now) {
		v.now = due.at
	}
	return due.call
}

func (v *Virtual) start(t *virtualTimer, d time.Duration) {
	v.seq++
	t.seq = v.seq
	t.at = v.now.Add(max(d, 0))
	heap.Push(&v.timers, t)
}

const notPending = -1

type virtualTimer struct {
	clock *Virtual
	call  func()
	at    time.Time
	seq   uint64
	pos   int // in the clock's heap, or notPending
}

func (t *virtualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.remove()
}

func (t *virtualTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	was := t.remove()
	t.clock.start(t, d)
	return was
}

func (t *virtualTimer) remove() bool {
	if t.pos == notPending {
		return false
	}
	heap.Remove(&t.clock.timers, t.pos)
	return true
}

// timerHeap is ordered by time, then by start. Invariant: h[i].pos == i.
type timerHeap []*virtualTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].seq < h[j].seq
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*virtualTimer)
	t.pos = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.pos = notPending
	return t
}
