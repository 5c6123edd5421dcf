package fit

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A Node is a view of one node of a snapshot. It is read-only.
type Node struct {
	Chunk *state.Chunk
	Index int32       // of the node in Chunk
	Rows  []state.Row // the node's allocations, ascending by priority
	// Claimed is the free capacity less the claimed capacity; nil if there are no claims.
	Claimed *model.FreeCapacity
}

// At returns the view of the node at a position, without claims.
func At(snap *state.Snapshot, pos int32) Node {
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), pos%state.ChunkSize
	return Node{Chunk: chunk, Index: i, Rows: chunk.Rows(int(i))}
}

// Offer returns how much of a dimension the node offers when it is empty.
func (n *Node) Offer(d int) int64 { return n.Chunk.Avail(d)[n.Index] }

// Model returns the node itself.
func (n *Node) Model() *model.Node { return n.Chunk.Node(int(n.Index)) }

// Free returns how much of a dimension is free.
func (n *Node) Free(d int) int64 {
	if n.Claimed != nil {
		return n.Claimed.Free[d*n.Claimed.Stride]
	}
	return n.Chunk.Free(d)[n.Index]
}

// Capacity returns the free capacity with ports and devices.
func (n *Node) Capacity() model.FreeCapacity {
	if n.Claimed != nil {
		return *n.Claimed
	}
	return n.Chunk.FreeCapacity(int(n.Index))
}
