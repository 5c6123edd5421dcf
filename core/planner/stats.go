package planner

import "sync"

// Stats holds the counters of an applier since it was created.
type Stats struct {
	Depth        int // queued plans
	Plans        uint64
	Malformed    uint64
	Nodes        uint64 // checked
	Groups       uint64 // committed
	Rejected     [causes]uint64
	Batches      uint64
	BatchPlans   uint64 // plans in those batches
	LargestBatch int    // plans
	Failures     uint64 // commits that failed
	Reverified   uint64 // plans checked again because a commit before them failed
	Marked       uint64 // nodes reported to be ineligible
}

// ByCause returns the rejections of each cause by its name.
func (s *Stats) ByCause() map[string]uint64 {
	m := make(map[string]uint64, causes)
	for c := range RejectionCause(causes) {
		m[c.String()] = s.Rejected[c]
	}
	return m
}

// counters guards Stats: the applier writes it, and any goroutine may read it. A lock
// suffices: it is taken a few times for each plan.
type counters struct {
	mu sync.Mutex
	s  Stats
}

func (c *counters) add(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counters) read() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s
}
