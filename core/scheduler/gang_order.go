package scheduler

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
)

// tryOrders places the groups that ask for most first: what is small finds room
// beside what is large more easily than the other way round. The planner looks at
// rules in the order of the job, so what it refuses does not count.
func (g *gang) tryOrders() (placed bool, err error) {
	r := g.run
	groups := g.largestFirst()
	if slices.Equal(groups, g.inOrder()) {
		return false, nil
	}
	if err := g.oneByOne(groups); err != nil {
		return false, err
	}
	if r.out.Placed() && g.holds() {
		return true, nil
	}
	g.rollback()
	return false, nil
}

// largestFirst is the groups by the largest share of a node that an instance asks
// for.
func (g *gang) largestFirst() []*model.Group {
	most := g.run.largestNode()
	groups := slices.Clone(g.run.job.Groups)
	slices.SortStableFunc(groups, func(a, b *model.Group) int {
		return cmp.Compare(shareOf(&b.Ask, &most), shareOf(&a.Ask, &most))
	})
	return groups
}

// largestNode is the most that any node has, dimension by dimension.
func (r *run) largestNode() (most model.Vector) {
	for c := range r.base.ChunkCount() {
		chunk := r.base.Chunk(c)
		for d := range r.base.Dims().Len() {
			most[d] = max(most[d], slices.Max(append(chunk.Avail(d)[:chunk.Len():chunk.Len()], 0)))
		}
	}
	return most
}

func shareOf(ask *model.Ask, of *model.Vector) (share float64) {
	for _, d := range ask.Dims {
		if of[d] > 0 {
			share = max(share, float64(ask.Vec[d])/float64(of[d]))
		}
	}
	return share
}

// holds is whether the planner would take what was placed.
func (g *gang) holds() bool {
	r := g.run
	var scratch planner.Scratch
	plan := &model.Plan{
		EvalID: "gang", Job: r.job.Key(), Priority: r.job.Priority,
		SnapshotIndex: r.base.Index(), Now: r.now, Groups: r.plan.groups(),
	}
	v, err := planner.Verify(r.base, plan, r.now, &CommitRules{}, &scratch)
	return err == nil && len(v.Rejected) == 0
}
