package placement

// A restart loses the work since the last checkpoint, whether it follows a move or an eviction. An
// instance that may be moved is seldom the one that loses the least: it needs capacity on another
// node, and a set has at most maxMoved instances. So moves that lose work are compared with the
// evictions that the policy chooses.
//
// The comparison is about work alone. It ignores that an evicted instance waits, and that one that
// is bound to its node may evict others when it returns.

import (
	"cmp"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A reclaimCost is the cost of removing instances from their nodes, by evictions or moves.
type reclaimCost struct {
	priority int32   // the highest of the instances
	lost     float64 // work since the last checkpoints in nanoseconds, weighted by dominant shares
}

// costOf returns the cost of removing some instances. largest is the result of LargestNode.
func costOf(allocs []*model.Allocation, now int64, largest *model.Vector) (c reclaimCost) {
	for i, a := range allocs {
		if i == 0 {
			c.priority = a.Job.Priority
		}
		c.priority = max(c.priority, a.Job.Priority)
		c.lost += float64(DominantShare(&a.Group.Ask, largest) * float64(a.Group.LostWork(a.Age(now))))
	}
	return c
}

// compare orders costs by priority, then by lost work.
func (c reclaimCost) compare(d reclaimCost) int {
	return cmp.Or(cmp.Compare(c.priority, d.priority), cmp.Compare(c.lost, d.lost))
}

// PrefersEvictions reports whether to evict some instances although moving others would suffice.
// A moved instance restarts as an evicted one does, so it loses its work too. But it need not
// wait for capacity. So evictions are preferred only if they lose less work, no higher
// priorities, and exceed no disruption budget. before is the state without either.
func PrefersEvictions(e *Evaluation, before *state.Snapshot, evicted, moved []*model.Allocation) bool {
	largest := LargestNode(e.State.Base)
	x, y := costOf(evicted, e.Now, &largest), costOf(moved, e.Now, &largest)
	if x.priority > y.priority || x.lost >= y.lost {
		return false
	}
	for i := range evicted {
		if !permitsLast(before, evicted[:i+1], e.Now) {
			return false
		}
	}
	return true
}

// LosesWork reports whether removing some instances from their nodes loses any work.
func LosesWork(e *Evaluation, allocs []*model.Allocation) bool {
	for _, a := range allocs {
		if a.Group.LostWork(a.Age(e.Now)) > 0 {
			return true
		}
	}
	return false
}
