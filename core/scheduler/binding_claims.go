package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// claimTime is how long room on a member cluster is kept for a binding after the
// last of those that make it has had its time to stop, in nanoseconds.
const claimTime = int64(10 * 60e9)

// Whoever left for a claim has left, whatever the binding does then. So it goes on
// with the claims that it has, as long as what is claimed will be there and is what
// it lacks: it does not choose again because other clusters have changed meanwhile,
// and what it claimed it takes before anything else that is free. Only where all of
// it is free elsewhere and the claimed room is not, it goes there at once: nobody is
// evicted for that, and those who stop come into the room that it gives up.

// held is the room that a binding has claims on.
type held struct {
	slots []slot
	ids   []string
	free  bool // it is there now
	valid bool // no claim has expired, or is for another priority
}

// held is what the binding has claimed; nil: nothing, or some of it will not be
// there. What this plan assigns is no part of it.
func (r *bindingRun) held() *held {
	h := &held{free: true, valid: true}
	for _, id := range r.snap.ClaimIDs(r.binding.Key()) {
		claim := r.snap.Claim(id)
		if r.assigns(claim.ClusterID) {
			continue
		}
		at := slices.IndexFunc(r.admitted, func(c *model.Cluster) bool { return c.ID == claim.ClusterID })
		replicas := r.binding.FittingReplicas(&claim.Vec, r.binding.Replicas)
		if at < 0 || replicas == 0 || claim.Vec != r.binding.TotalAsk(replicas) {
			return nil
		}
		free, soon := r.room(r.admitted[at])
		if !covers(&soon, &claim.Vec) {
			return nil
		}
		s := r.slot(r.admitted[at], replicas)
		s.add = replicas
		h.slots, h.ids = append(h.slots, s), append(h.ids, id)
		h.free = h.free && covers(&free, &claim.Vec)
		h.valid = h.valid && r.now < claim.Expiry && claim.Priority == r.binding.Priority
	}
	if len(h.slots) == 0 {
		return nil
	}
	return h
}

// heldFor is what is held where that is so many replicas, spread as they must be.
func (r *bindingRun) heldFor(missing int) *held {
	h := r.held()
	if h == nil {
		return nil
	}
	for _, s := range h.slots {
		missing -= s.add
	}
	if missing != 0 || r.bounds().most(h.slots, nil) < 0 {
		return nil
	}
	return h
}

// keep waits on with what is held, with other claims where those do not hold.
func (r *bindingRun) keep(h *held, why *model.Explanation) {
	if !h.valid {
		r.claimAll(h.slots, r.stopTime, why)
		return
	}
	r.kept = h.ids
	why.NoEviction = claimed(h.slots[0].cluster.ID)
}

// claimed is why nobody else is evicted for a binding.
func claimed(cluster string) string {
	return "its room on " + cluster + " is claimed and has yet to be left"
}

// claimedFirst is the clusters in tie order, those first on which the binding has
// claims.
func (r *bindingRun) claimedFirst(clusters []*model.Cluster) []*model.Cluster {
	slices.SortStableFunc(r.inOrder(clusters), func(x, y *model.Cluster) int { return r.claimOrder(x, y) })
	return clusters
}

func (r *bindingRun) claimOrder(x, y *model.Cluster) int {
	rank := func(c *model.Cluster) int {
		if r.snap.HasClaimOn(c.ID, r.binding.Key()) {
			return 0
		}
		return 1
	}
	return cmp.Compare(rank(x), rank(y))
}

// claimAll claims room for the replicas of slots, each until wait is over, and
// returns the claims by cluster.
func (r *bindingRun) claimAll(chosen []slot, wait func(cluster string) int64, why *model.Explanation) map[string]string {
	claims, longest := map[string]string{}, int64(0)
	for _, s := range chosen { // none may expire before the last is free
		longest = max(longest, wait(s.cluster.ID))
	}
	for _, s := range chosen {
		needs := r.binding.TotalAsk(s.add)
		claims[s.cluster.ID] = r.claim(s.cluster.ID, &needs, longest)
	}
	why.NoEviction = claimed(chosen[0].cluster.ID)
	return claims
}

// claim reserves room until wait is over and the time for claims as well.
func (r *bindingRun) claim(cluster string, needs *model.Vector, wait int64) string {
	id := fmt.Sprintf("claim/%s/%d", model.AssignmentID(r.binding.Key(), cluster, r.eval.ID), r.snap.Index())
	expiry := r.now + claimTime
	if wait < math.MaxInt64-expiry {
		expiry += wait
	}
	r.plan.Claims = append(r.plan.Claims, &model.Claim{
		ID: id, Claimant: r.binding.Key(), ClusterID: cluster, Vec: *needs, Priority: r.binding.Priority, Expiry: expiry,
	})
	r.out.RecheckAt = expiry
	return id
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
