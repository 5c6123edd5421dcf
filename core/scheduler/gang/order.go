package gang

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// placementOrder returns the order in which the groups of a gang are placed. It does not
// depend on their order in the job, since none of them is placed without the others. The
// largest request goes first: small instances fit next to large ones more easily than the
// reverse. But a group that must run near another one of the job follows that one.
func placementOrder(snap *state.Snapshot, job *model.Job) []*model.Group {
	return feasible.PlacementOrder(largestFirst(snap, job.Groups))
}

// largestFirst returns the groups by the share of the largest node that an instance
// requests, and by name among equals.
func largestFirst(snap *state.Snapshot, groups []*model.Group) []*model.Group {
	if len(groups) < 2 {
		return slices.Clone(groups)
	}
	largest := largestNode(snap)
	groups = slices.Clone(groups)
	slices.SortFunc(groups, func(a, b *model.Group) int {
		return cmp.Or(cmp.Compare(dominantShare(&b.Ask, &largest), dominantShare(&a.Ask, &largest)), strings.Compare(a.Name, b.Name))
	})
	return groups
}

// largestNode returns the maximum over all nodes, dimension by dimension.
func largestNode(snap *state.Snapshot) (most model.Vector) {
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for d := range snap.Dims().Len() {
			most[d] = max(most[d], slices.Max(append(chunk.Avail(d)[:chunk.Len():chunk.Len()], 0)))
		}
	}
	return most
}

// dominantShare returns the largest share of any dimension that a request needs. It is
// the measure of dominant resource fairness. A dimension that no node has is ignored,
// since feasibility excludes the group then.
func dominantShare(ask *model.Ask, of *model.Vector) (share float64) {
	for _, d := range ask.Dims {
		if of[d] > 0 {
			share = max(share, float64(ask.Vec[d])/float64(of[d]))
		}
	}
	return share
}
