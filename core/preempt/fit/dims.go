package fit

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Dims are the dimensions that a search tracks: those that the group requests, and
// those that rank a node. A deficit is one amount for each of them: how much the node
// lacks of the request. Amounts to spare are negative.
type Dims struct {
	Tracked   []uint8 // the requested dimensions first
	Requested int     // how many of Tracked are requested
	Untracked []uint8 // all other dimensions of the cluster

	cpu, memory int // positions in Tracked
}

// Reset tracks the dimensions of a request on a cluster with dims dimensions.
func (t *Dims) Reset(ask *model.Ask, dims int) {
	t.Tracked, t.Requested = append(t.Tracked[:0], ask.Dims...), len(ask.Dims)
	t.cpu, t.memory = t.track(model.CPU), t.track(model.Memory)
	t.Untracked = t.Untracked[:0]
	for d := range uint8(dims) {
		if !slices.Contains(t.Tracked, d) {
			t.Untracked = append(t.Untracked, d)
		}
	}
}

// track adds a dimension unless it is tracked already, and returns its position.
func (t *Dims) track(d uint8) int {
	at := slices.Index(t.Tracked, d)
	if at < 0 {
		at, t.Tracked = len(t.Tracked), append(t.Tracked, d)
	}
	return at
}

// AppendDeficit appends the deficit of a node.
func (t *Dims) AppendDeficit(deficit []int64, n *Node, ask *model.Ask) []int64 {
	for _, d := range t.Tracked {
		deficit = append(deficit, ask.Vec[d]-n.Free(int(d)))
	}
	return deficit
}

// CountShort returns how many of the requested dimensions are short.
func (t *Dims) CountShort(deficit []int64) (short int) {
	for _, lack := range deficit[:t.Requested] {
		if lack > 0 {
			short++
		}
	}
	return short
}

// Release subtracts the amounts of an evicted allocation from a deficit. It returns how
// many of the requested dimensions are short no longer.
func (t *Dims) Release(deficit []int64, held *model.Vector) (covered int) {
	deficit = deficit[:len(t.Tracked)]
	for i, d := range t.Tracked {
		before := deficit[i]
		deficit[i] = before - held[d%model.MaxDimensions]
		if before > 0 && deficit[i] <= 0 && i < t.Requested {
			covered++
		}
	}
	return covered
}

// Occupy undoes Release. It returns how many of the requested dimensions have become
// short.
func (t *Dims) Occupy(deficit []int64, held *model.Vector) (uncovered int) {
	deficit = deficit[:len(t.Tracked)]
	for i, d := range t.Tracked {
		before := deficit[i]
		deficit[i] = before + held[d%model.MaxDimensions]
		if before <= 0 && deficit[i] > 0 && i < t.Requested {
			uncovered++
		}
	}
	return uncovered
}
