package rank

import (
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
)

// Order lists the nodes in tie order. It is computed once per set of nodes.
// Invariant: ByRank[RankOf[pos]] == pos for every node.
type Order struct {
	ByRank []int32 // positions of nodes by rank
	RankOf []int32 // ranks by position; -1: no node

	source []int32 // node order that it was computed from, to detect another set of nodes
	ties   tiebreak.Order
}

// Refresh updates the order for the nodes of a snapshot. It costs O(1) if the set
// of nodes is the same as before.
func (o *Order) Refresh(snap *state.Snapshot, ties tiebreak.Order) {
	ids := snap.NodeOrder()
	if o.RankOf != nil && o.ties == ties && sameMemory(o.source, ids) {
		return
	}
	o.source, o.ties, o.ByRank = ids, ties, ids
	if !ties.ByID() {
		o.ByRank = slices.Clone(ids)
		slices.SortFunc(o.ByRank, func(a, b int32) int {
			return ties.Compare(snap.NodeAt(a).ID, snap.NodeAt(b).ID)
		})
	}
	n := snap.ChunkCount() * state.ChunkSize
	o.RankOf = slices.Grow(o.RankOf[:0], n)[:n]
	for i := range o.RankOf {
		o.RankOf[i] = -1
	}
	for rank, pos := range o.ByRank {
		o.RankOf[pos] = int32(rank)
	}
}

// Sort sorts node positions into tie order.
func (o *Order) Sort(nodes []int32) {
	slices.SortFunc(nodes, func(a, b int32) int { return int(o.RankOf[a] - o.RankOf[b]) })
}

// sameMemory reports whether two read-only slices share their memory. Snapshots with
// the same nodes share one list, so the comparison is exact in one direction: different
// memory may hold equal lists, which costs a sort and no more.
func sameMemory(a, b []int32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
