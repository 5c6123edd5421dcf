package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
)

// order is the nodes in tie order: positions by rank, and ranks by position.
// It is computed once for each set of nodes.
type order struct {
	source []int32 // what it was made from, to notice another set
	byRank []int32
	rankOf []int32 // -1: no node at that position
	seed   uint64
}

// refresh brings the order up to date with the snapshot's nodes.
func (o *order) refresh(snap *state.Snapshot, ties tiebreak.Order) {
	ids := snap.NodeOrder()
	if o.rankOf != nil && o.seed == ties.Seed && sameSlice(o.source, ids) {
		return
	}
	o.source, o.seed, o.byRank = ids, ties.Seed, ids
	if !ties.ByID() {
		o.byRank = slices.Clone(ids)
		slices.SortFunc(o.byRank, func(a, b int32) int {
			return ties.Compare(snap.NodeAt(a).ID, snap.NodeAt(b).ID)
		})
	}
	o.rankOf = slices.Grow(o.rankOf[:0], snap.ChunkCount()*state.ChunkSize)[:snap.ChunkCount()*state.ChunkSize]
	for i := range o.rankOf {
		o.rankOf[i] = -1
	}
	for rank, pos := range o.byRank {
		o.rankOf[pos] = int32(rank)
	}
}

// sameSlice is whether two read-only slices share their memory.
func sameSlice(a, b []int32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
