package server

import (
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
)

// simClock is the clock of one machine: it may be wrong, and jump. What is due while
// the machine is paused happens when it goes on. Differences of its times do not jump
// with it, as those of a real clock; in every third seed they do, so it is worse than one.
type simClock struct {
	net *simNetwork
	id  string

	mu     sync.Mutex
	offset time.Duration
}

var _ clock.Clock = (*simClock)(nil)

func (c *simClock) jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// Now is the time, as this machine has it.
func (c *simClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.net.seed%3 == 0 {
		return time.Now().Add(c.offset)
	}
	return coretest.SetClock(time.Now(), c.offset)
}

// AfterFunc calls f once d has passed and the machine is not paused.
func (c *simClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return time.AfterFunc(d, func() {
		for held := c.net.waiting(c.id, c.id); held != nil; held = c.net.waiting(c.id, c.id) {
			<-held
		}
		f()
	})
}
