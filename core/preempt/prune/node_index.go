package prune

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/state"
)

// A NodeIndex maps positions of nodes to slots: positions in the nodes of the request.
// It is built on first use, as most searches need none.
type NodeIndex struct {
	nodes  []int32
	slots  []int32 // by position; -1: not in the search
	built  bool
	allocs []*model.Allocation // scratch of JobAllocs
}

// Reset starts a new search over nodes.
func (x *NodeIndex) Reset(nodes []int32) { x.nodes, x.built = nodes, false }

// Slot returns the slot of the node at a position; ok is false if the node is not in
// the search.
func (x *NodeIndex) Slot(snap *state.Snapshot, pos int32) (slot int32, ok bool) {
	if !x.built {
		x.build(snap)
	}
	if int(pos) >= len(x.slots) {
		return 0, false
	}
	slot = x.slots[pos]
	return slot, slot >= 0
}

// build costs one pass over the positions of the cluster.
func (x *NodeIndex) build(snap *state.Snapshot) {
	x.built = true
	x.slots = scratch.Sized(x.slots, snap.ChunkCount()*state.ChunkSize)
	for i := range x.slots {
		x.slots[i] = -1
	}
	for slot, pos := range x.nodes {
		x.slots[pos] = int32(slot)
	}
}

// JobAllocs returns the allocations of a job, live or not. The list is valid until the
// next call.
func (x *NodeIndex) JobAllocs(snap *state.Snapshot, key model.JobKey) []*model.Allocation {
	x.allocs = snap.AppendJobAllocs(x.allocs[:0], key)
	return x.allocs
}

// Release drops references into the snapshot.
func (x *NodeIndex) Release() { clear(x.allocs) }
