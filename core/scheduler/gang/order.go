package gang

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
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
	largest := placement.LargestNode(snap)
	groups = slices.Clone(groups)
	slices.SortFunc(groups, func(a, b *model.Group) int {
		return cmp.Or(cmp.Compare(placement.DominantShare(&b.Ask, &largest), placement.DominantShare(&a.Ask, &largest)), strings.Compare(a.Name, b.Name))
	})
	return groups
}
