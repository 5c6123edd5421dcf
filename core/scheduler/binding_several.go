package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
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
		r.awaitAll(chosen, why)
		return nil
	}
	if open := r.version.Breaker.Open(r.now); open != nil {
		return open
	}
	r.asked = true
	found, err := preempt.FindSpread(r.snap, r.request(r.admitted, missing), func(rooms []model.Vector) bool {
		_, ok := r.divideOver(missing, rooms)
		return ok
	})
	if err != nil {
		return err
	}
	if len(found.Victims) == 0 {
		return nil
	}
	for _, v := range found.Victims {
		at := slices.IndexFunc(r.admitted, func(c *model.Cluster) bool { return c.ID == v.ClusterID })
		freed := v.Freed()
		rooms[at].Add(&freed)
	}
	chosen, _ := r.divideOver(missing, rooms)
	claims := r.claimAll(chosen, func(cluster string) (wait int64) {
		for _, v := range found.Victims {
			if v.ClusterID == cluster {
				wait = max(wait, r.killTimeout(v.Assignment))
			}
		}
		return max(wait, r.stopTime(cluster))
	}, why)
	for _, v := range found.Victims {
		if id := claims[v.ClusterID]; id != "" {
			r.plan.Withdraw = append(r.plan.Withdraw, model.Withdrawal{AssignmentID: v.ID, Keep: v.Keep, By: id, Policy: found.Found.Version.ID})
		}
	}
	return nil
}

// divideOver divides replicas over the clusters that admit the binding, by the
// room that each would have.
func (r *bindingRun) divideOver(missing int, rooms []model.Vector) ([]slot, bool) {
	slots := make([]slot, len(r.admitted))
	for i, c := range r.admitted {
		_, has := r.on[c.ID]
		slots[i] = slot{
			cluster: c, room: r.binding.Fits(&rooms[i], missing), weight: int64(r.binding.Weights[c.ID]), has: has,
		}
	}
	return divide(missing, slots, r.binding, len(r.on))
}

// awaitAll waits with claims on clusters where others are stopping already: with
// those that the binding has, when they are for the same, else with new ones.
func (r *bindingRun) awaitAll(chosen []slot, why *model.Explanation) {
	own := r.snap.ClaimsOf(r.binding.Key())
	same := len(own) == len(chosen)
	for _, id := range own {
		claim := r.snap.Claim(id)
		at := slices.IndexFunc(chosen, func(s slot) bool { return s.cluster.ID == claim.ClusterID })
		same = same && at >= 0 && r.now < claim.Expiry && claim.Priority == r.binding.Priority && claim.Vec == r.binding.Needs(chosen[at].add)
	}
	if same {
		r.kept = own
		why.NoEviction = claimed(chosen[0].cluster.ID)
		return
	}
	r.claimAll(chosen, r.stopTime, why)
}

// claimAll claims room for the replicas of slots, each until wait is over, and
// returns the claims by cluster.
func (r *bindingRun) claimAll(chosen []slot, wait func(cluster string) int64, why *model.Explanation) map[string]string {
	claims, longest := map[string]string{}, int64(0)
	for _, s := range chosen { // none may expire before the last is free
		longest = max(longest, wait(s.cluster.ID))
	}
	for _, s := range chosen {
		needs := r.binding.Needs(s.add)
		claims[s.cluster.ID] = r.claim(s.cluster.ID, &needs, longest)
	}
	why.NoEviction = claimed(chosen[0].cluster.ID)
	return claims
}

// stopTime is how long what is stopping on a cluster may take.
func (r *bindingRun) stopTime(cluster string) (wait int64) {
	for _, a := range r.snap.ClusterAssignments(cluster) {
		if !a.Live() {
			wait = max(wait, r.killTimeout(a))
		}
	}
	return wait
}
