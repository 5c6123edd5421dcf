package raftshim

import (
	"sync"
	"time"
)

// inflight counts calls that Raft has not answered. Raft never answers calls
// in its queues when it shuts down, so that callers would wait forever. Close
// therefore rejects new calls and waits for those in flight first.
type inflight struct {
	mu      sync.Mutex
	count   int
	closing bool
	idle    chan struct{} // nil before drain; closed once count is 0
}

// add registers a call and reports whether it may start. If it may, done must be
// called.
func (c *inflight) add() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.count++
	return true
}

// done ends a call that add has registered.
func (c *inflight) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count--
	if c.closing && c.count == 0 {
		close(c.idle)
	}
}

// drain rejects new calls and waits until those in flight are done, or until the
// timeout expires. A second drain returns at once.
func (c *inflight) drain(timeout time.Duration) {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return
	}
	c.closing, c.idle = true, make(chan struct{})
	if c.count == 0 {
		close(c.idle)
	}
	c.mu.Unlock()
	select {
	case <-c.idle:
	case <-time.After(timeout): //nolint:forbidigo // Raft uses the real clock
	}
}
