package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/binding"
)

// makeRoomOnSeveral has others evicted from several clusters together, where a
// policy says so and no single one would do: all of it is claimed in one plan, or
// nobody leaves.
func (r *bindingRun) makeRoomOnSeveral(missing int, why *model.Explanation) error {
	rooms := make([]model.Vector, len(r.admitted))
	for i, c := range r.admitted {
		_, rooms[i] = r.room(c)
	}
	if chosen, ok := r.divideOver(missing, rooms); ok {
		r.claimAll(chosen, r.stopTime, why)
		return nil
	}
	if open := r.version.Breaker.OpenError(r.now); open != nil {
		return open
	}
	r.asked = true
	found, err := binding.FindSpread(r.snap, r.request(r.admitted, missing), func(rooms []model.Vector) bool {
		return r.holds(missing, rooms)
	})
	if err != nil {
		return err
	}
	if len(found.Victims) == 0 {
		if why.Preempted == nil { // else it was told why no single one would do
			ceiling := binding.Ceiling(r.binding.Priority, r.version, r.snap.Config().PriorityDelta)
			for _, o := range found.Result.Outcomes {
				model.CountReason(&why.Preempted, bindingObstacle(o, ceiling), 1)
			}
		}
		if at := found.Result.RecheckAt; at != 0 && (r.out.RecheckAt == 0 || at < r.out.RecheckAt) {
			r.out.RecheckAt = at
		}
		return nil
	}
	for _, v := range found.Victims {
		at := slices.IndexFunc(r.admitted, func(c *model.Cluster) bool { return c.ID == v.ClusterID })
		freed := v.Freed()
		rooms[at].Add(&freed)
	}
	chosen, _ := r.divideOver(missing, rooms)
	r.displace(chosen, found.Victims, found.Result.Version.ID, why)
	return nil
}

// divideOver divides replicas over the clusters that admit the binding, by the
// room that each would have.
func (r *bindingRun) divideOver(missing int, rooms []model.Vector) ([]slot, bool) {
	if r.binding.SpreadBy == "" {
		return divide(missing, r.slots(missing, rooms), r.binding, len(r.on))
	}
	return r.bounds().divide(missing, r.slots(missing, rooms))
}

// holds is whether replicas could be divided so.
func (r *bindingRun) holds(missing int, rooms []model.Vector) bool {
	if r.binding.SpreadBy == "" {
		_, ok := r.divideOver(missing, rooms)
		return ok
	}
	x := r.bounds()
	return x.least() <= missing && x.most(nil, r.slots(missing, rooms)) >= missing
}

func (r *bindingRun) slots(missing int, rooms []model.Vector) []slot {
	slots := make([]slot, len(r.admitted))
	for i, c := range r.admitted {
		slots[i] = r.slot(c, r.binding.FittingReplicas(&rooms[i], missing))
	}
	return slots
}

// slot is a cluster with room for replicas.
func (r *bindingRun) slot(c *model.Cluster, room int) slot {
	_, has := r.on[c.ID]
	return slot{cluster: c, group: r.binding.SpreadGroup(c), room: room, weight: int64(r.binding.Weights[c.ID]), has: has}
}
