package gang

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/state"
)

// tryLargestFirst places the groups with the largest requests first: small
// instances fit next to large ones more easily than the reverse. The planner
// verifies rules in the order of the job, so a result that it would reject does
// not count.
func (g *gang) tryLargestFirst() (placed bool, err error) {
	e := g.e
	groups := largestFirst(e.State.Base, e.Job.Groups)
	if slices.Equal(groups, e.Job.Groups) {
		return false, nil
	}
	if err := g.placeGroups(groups); err != nil {
		return false, err
	}
	if e.Unplaced.IsEmpty() && isCommittable(e) {
		return true, nil
	}
	g.rollback()
	return false, nil
}

// largestFirst sorts groups by the share of the largest node that an instance requests.
func largestFirst(snap *state.Snapshot, groups []*model.Group) []*model.Group {
	largest := largestNode(snap)
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b *model.Group) int {
		return cmp.Compare(dominantShare(&b.Ask, &largest), dominantShare(&a.Ask, &largest))
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

// dominantShare returns the largest share of any dimension that a request needs.
func dominantShare(ask *model.Ask, of *model.Vector) (share float64) {
	for _, d := range ask.Dims {
		if of[d] > 0 {
			share = max(share, float64(ask.Vec[d])/float64(of[d]))
		}
	}
	return share
}

// isCommittable reports whether the planner would commit the plan.
func isCommittable(e *placement.Evaluation) bool {
	var scratch planner.Scratch
	base := e.State.Base
	// The ID never leaves this function: the plan is verified and discarded.
	plan := &model.Plan{
		EvalID: "gang", Job: e.Job.Key(), Priority: e.Job.Priority,
		SnapshotIndex: base.Index(), Now: e.Now, Groups: e.Plan.Groups(),
	}
	v, err := planner.Verify(base, plan, e.Now, &feasible.Verifier{}, &scratch)
	return err == nil && len(v.Rejected) == 0
}
