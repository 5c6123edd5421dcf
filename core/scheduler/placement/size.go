package placement

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// LargestNode returns the maximum capacity over all nodes, dimension by dimension.
func LargestNode(snap *state.Snapshot) (most model.Vector) {
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for d := range snap.Dims().Len() {
			most[d] = max(most[d], slices.Max(append(chunk.Avail(d)[:chunk.Len():chunk.Len()], 0)))
		}
	}
	return most
}

// DominantShare returns the largest share of any dimension that a request needs. It is
// the measure of dominant resource fairness. A dimension that no node has is ignored,
// since feasibility excludes the group then.
func DominantShare(ask *model.Ask, of *model.Vector) (share float64) {
	for _, d := range ask.Dims {
		if of[d] > 0 {
			share = max(share, float64(ask.Vec[d])/float64(of[d]))
		}
	}
	return share
}
