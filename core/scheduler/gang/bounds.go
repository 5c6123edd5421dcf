package gang

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
	"github.com/cede-scheduler/cede/core/state"
)

// greedyIsComplete reports whether the greedy attempt finds a solution if there is one:
// all instances are alike, and each uses capacity of its own node alone. In that case
// the searches would only repeat the failure, at a far higher cost. If attempts were made in
// every domain of a level, co-location in that level is no obstacle.
func (g *gang) greedyIsComplete(levels []topology.Level) bool {
	e := g.e
	groups := 0
	for i, group := range e.Job.Groups {
		if len(g.missing[i]) == 0 {
			continue
		}
		groups++
		rules := feasible.NewRules(e.Rules, group)
		binds := rules.Binds() && (len(levels) != 1 || len(group.Colocate) != 1 || !rules.BindsByColocationAlone())
		if len(group.Ask.Devices) > 0 || binds || rules != nil && rules.HasSeparation() {
			return false
		}
	}
	base := e.State.Base
	return groups < 2 && (!e.Preemption.Allowed || base.StrictBudgetCount() == 0 && !hasEvictionRules(base))
}

// hasEvictable reports whether any allocation has a priority up to the ceiling. It
// reads one column of each chunk, and ends at the first hit.
func hasEvictable(snap *state.Snapshot, ceiling int64) bool {
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for i := range chunk.Len() {
			if int64(chunk.MinPriority(i)) <= ceiling {
				return true
			}
		}
	}
	return false
}

// hasEvictionRules reports whether anything but priorities limits evictions.
func hasEvictionRules(snap *state.Snapshot) bool {
	for c := range snap.ChunkCount() {
		if snap.Chunk(c).HasEvictionRules() != 0 {
			return true
		}
	}
	return false
}

// mayFit reports whether each group by itself would fit after the eviction of
// everything up to the ceiling. It excludes most blocked gangs with one pass over
// the nodes.
func (g *gang) mayFit() bool {
	for i, group := range g.e.Job.Groups {
		if !groupMayFit(g.e, group, len(g.missing[i]), g.e.Preemption.Ceiling) {
			return false
		}
	}
	return true
}

// groupMayFit reports whether need instances may fit once everything up to a ceiling has left. It
// ends as soon as they do.
func groupMayFit(e *placement.Evaluation, group *model.Group, need int, ceiling int64) bool {
	checker := feasible.NewNodeChecker(group, e.State.Base.ClassCount())
	// Other rules are ignored here: the result is an upper bound.
	perNode := math.MaxInt
	if feasible.DistinctHosts(group) {
		perNode = 1
	}
	snap := e.State.Snapshot()
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for i := range chunk.Len() {
			if need <= 0 {
				return true
			}
			if chunk.Eligible()>>i&1 == 1 && checker.Feasible(chunk, i) {
				free := placement.FreeableCapacity(snap, int32(c*state.ChunkSize+i), ceiling)
				need -= fittingInstances(&free, &group.Ask, min(need, perNode))
			}
		}
	}
	return need <= 0
}

// fittingInstances returns how many instances fit into a capacity, at most limit.
func fittingInstances(free *model.Vector, ask *model.Ask, limit int) int {
	n := int64(limit)
	for _, d := range ask.Dims {
		if ask.Vec[d] > 0 {
			n = min(n, max(0, free[d])/ask.Vec[d])
		}
	}
	return int(n)
}
