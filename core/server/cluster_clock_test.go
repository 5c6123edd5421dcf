package server

import (
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
)

// A simClock is the clock of one host: it may be wrong, and jump. If the host is paused,
// its timers fire when it resumes. Differences of times do not jump, like those of a real
// clock; in every third seed they do, to test the worse case.
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

// Now returns the time of the host.
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
