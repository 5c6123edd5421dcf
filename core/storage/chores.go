package storage

import (
	"sync"
	"time"
)

// chores are the goroutines that work in the background until stop.
type chores struct {
	stopped chan struct{}
	kicked  chan struct{} // one slot: there is something to do
	running sync.WaitGroup
	once    sync.Once
}

// start runs each of works; the first of them hears kicks.
func (c *chores) start(works ...func(stop, kicked <-chan struct{})) {
	c.stopped, c.kicked = make(chan struct{}), make(chan struct{}, 1)
	for i, work := range works {
		var kicked <-chan struct{}
		if i == 0 {
			kicked = c.kicked
		}
		c.running.Go(func() { work(c.stopped, kicked) })
	}
}

func (c *chores) kick() {
	select {
	case c.kicked <- struct{}{}:
	default:
	}
}

// stop ends them and waits; twice is once.
func (c *chores) stop() {
	c.once.Do(func() { close(c.stopped) })
	c.running.Wait()
}

// rest waits for d; false when it is time to stop.
func rest(stop <-chan struct{}, d time.Duration) bool {
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
