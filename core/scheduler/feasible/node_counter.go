package feasible

import (
	"slices"

	"github.com/cede-scheduler/cede/core/state"
)

// A nodeCounter counts by node position. It is dense because a scan reads it for
// every node, and it is cleared by the touched positions because they are few.
type nodeCounter struct {
	byNode  []int32
	touched []int32 // positions that may be non-zero; may hold duplicates
}

func (c *nodeCounter) at(pos int32) int { return int(c.byNode[pos]) }

// isEmpty reports whether nothing was counted since the counter was acquired.
func (c *nodeCounter) isEmpty() bool { return len(c.touched) == 0 }

func (c *nodeCounter) add(pos int32, n int) {
	if c.byNode[pos] == 0 {
		c.touched = append(c.touched, pos)
	}
	c.byNode[pos] += int32(n)
}

// positions returns the nodes with a count, ascending and without duplicates.
func (c *nodeCounter) positions() []int32 {
	slices.Sort(c.touched)
	c.touched = slices.Compact(c.touched)
	return c.touched
}

func (c *nodeCounter) clear() {
	for _, pos := range c.touched {
		c.byNode[pos] = 0
	}
	c.touched = c.touched[:0]
}

// CounterPool reuses the memory of node counters between evaluations: one counter
// has the size of the cluster. The zero value is ready.
type CounterPool struct{ all, free []*nodeCounter }

// acquire returns an empty counter that covers every node of a snapshot.
func (p *CounterPool) acquire(snap *state.Snapshot) *nodeCounter {
	var c *nodeCounter
	if n := len(p.free); n > 0 {
		c, p.free = p.free[n-1], p.free[:n-1]
	} else {
		c = &nodeCounter{}
		p.all = append(p.all, c)
	}
	if n := snap.ChunkCount() * state.ChunkSize; len(c.byNode) < n {
		c.byNode = make([]int32, n)
	}
	return c
}

// Reclaim clears and frees every counter. Rules that hold one must not be used
// afterwards.
func (p *CounterPool) Reclaim() {
	for _, c := range p.all {
		c.clear()
	}
	p.free = append(p.free[:0], p.all...)
}
