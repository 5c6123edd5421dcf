package scheduler

import "github.com/cede-scheduler/cede/core/state"

// tally counts by node position. It is dense, since it is asked for every node
// of a scan, and cleared by what was touched, since that is little.
type tally struct {
	by      []int32
	touched []int32
}

func (t *tally) at(pos int32) int { return int(t.by[pos]) }

func (t *tally) empty() bool { return len(t.touched) == 0 }

func (t *tally) add(pos int32, n int) {
	if t.by[pos] == 0 {
		t.touched = append(t.touched, pos)
	}
	t.by[pos] += int32(n)
}

func (t *tally) clear() {
	for _, pos := range t.touched {
		t.by[pos] = 0
	}
	t.touched = t.touched[:0]
}

// tallies keeps the memory of tallies from one evaluation to the next.
type tallies struct{ all, free []*tally }

// take hands out an empty tally with room for every node of a snapshot.
func (p *tallies) take(snap *state.Snapshot) *tally {
	var t *tally
	if n := len(p.free); n > 0 {
		t, p.free = p.free[n-1], p.free[:n-1]
	} else {
		t = &tally{}
		p.all = append(p.all, t)
	}
	if n := snap.ChunkCount() * state.ChunkSize; len(t.by) < n {
		t.by = make([]int32, n)
	}
	return t
}

// reclaim takes every tally back at the end of an evaluation.
func (p *tallies) reclaim() {
	for _, t := range p.all {
		t.clear()
	}
	p.free = append(p.free[:0], p.all...)
}
