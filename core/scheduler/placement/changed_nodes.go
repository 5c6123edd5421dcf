package placement

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// changedNodes lists the nodes that changed after an index. One list
// serves all groups of an evaluation.
type changedNodes struct {
	snap  *state.Snapshot // from which the list was made; nil: there is no list
	from  uint64          // index after which it lists changes
	nodes []changedNode
	// reclaimable holds FreeableCapacity of some nodes; see changedNode.reclaimable.
	reclaimable []model.Vector
}

type changedNode struct {
	pos         int32
	reclaimable int32 // position in changedNodes.reclaimable; -1: not yet computed
	index       uint64
}

func (c *changedNodes) reset() { c.snap = nil }

// since returns the eligible nodes that changed after an index, and perhaps some that
// changed earlier. The list is valid until the next call with another snapshot or an
// earlier index.
func (c *changedNodes) since(snap *state.Snapshot, index uint64) []changedNode {
	if c.snap == snap && c.from <= index {
		return c.nodes
	}
	c.snap, c.from = snap, index
	c.nodes, c.reclaimable = c.nodes[:0], c.reclaimable[:0]
	for k := range snap.ChunkCount() {
		chunk := snap.Chunk(k)
		if chunk.MaxModifyIndex() <= index {
			continue
		}
		for i := range chunk.Len() {
			if at := chunk.ModifyIndex(i); at > index && chunk.Eligible()>>i&1 == 1 {
				c.nodes = append(c.nodes, changedNode{int32(k*state.ChunkSize + i), -1, at})
			}
		}
	}
	return c.nodes
}

// mightTake reports whether a node would have enough capacity for a request after
// the eviction of everything up to a priority.
func (c *changedNodes) mightTake(n *changedNode, snap *state.Snapshot, ask *model.Ask, ceiling int64) bool {
	if n.reclaimable < 0 {
		n.reclaimable = int32(len(c.reclaimable))
		c.reclaimable = append(c.reclaimable, FreeableCapacity(snap, n.pos, ceiling))
	}
	free := &c.reclaimable[n.reclaimable]
	for _, d := range ask.Dims {
		if free[d] < ask.Vec[d] {
			return false
		}
	}
	return true
}

// FreeableCapacity returns the free capacity of a node after the eviction of
// everything up to a priority. It is an upper bound: rules, budgets and policies
// may protect some of it.
func FreeableCapacity(snap *state.Snapshot, pos int32, ceiling int64) (free model.Vector) {
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	for d := range snap.Dims().Len() {
		free[d] = chunk.Free(d)[i]
	}
	if int64(chunk.MinPriority(i)) > ceiling {
		return free
	}
	for _, row := range chunk.Rows(i) { // ascending by priority
		if int64(row.Priority) > ceiling {
			break
		}
		for _, d := range row.Group.Ask.Dims {
			free[d] += row.Group.Ask.Vec[d]
		}
	}
	return free
}
