package background

import (
	"sync"
	"time"
)

// A Group runs goroutines in the background until Stop. The zero value must be started
// once. Stop must not be called before Start.
type Group struct {
	stopped chan struct{}
	wake    chan struct{} // capacity 1, so that a wake-up during a run is not lost and never blocks
	running sync.WaitGroup
	once    sync.Once
}

// Start runs each of works in its own goroutine. Only the first receives wake-ups.
func (c *Group) Start(works ...func(stop, kicked <-chan struct{})) {
	c.stopped, c.wake = make(chan struct{}), make(chan struct{}, 1)
	for i, work := range works {
		var kicked <-chan struct{}
		if i == 0 {
			kicked = c.wake
		}
		c.running.Go(func() { work(c.stopped, kicked) })
	}
}

// Wake makes the first goroutine run. It does not block; wake-ups that coincide are merged.
func (c *Group) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Stop ends the goroutines and waits for them. It may be called again.
func (c *Group) Stop() {
	c.once.Do(func() { close(c.stopped) })
	c.running.Wait()
}

// Sleep waits for d and returns true, or returns false as soon as stop is closed.
// Background work uses it instead of time.Sleep, so that Stop does not wait for a
// pause.
func Sleep(stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-stop:
		return false
	case <-t.C:
		return true
	}
}
