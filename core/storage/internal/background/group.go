package background

import (
	"sync"
	"time"
)

// chores are the goroutines that work in the background until stop.
type Group struct {
	stopped chan struct{}
	wake    chan struct{} // one slot: there is something to do
	running sync.WaitGroup
	once    sync.Once
}

// Start runs each of works; the first of them hears kicks.
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

func (c *Group) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Stop ends them and waits; twice is once.
func (c *Group) Stop() {
	c.once.Do(func() { close(c.stopped) })
	c.running.Wait()
}

// rest waits for d; false when it is time to stop.
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
