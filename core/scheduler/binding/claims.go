package binding

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// claimTTL is how long capacity on a member cluster is reserved for a binding after
// the kill timeouts of its victims, in nanoseconds.
const claimTTL = int64(10 * 60e9)

// Evictions for a claim cannot be undone. So a binding retains its claims as long as
// the claimed capacity will become free and matches the missing replicas: it does
// not choose again if other clusters change, and it uses the claimed capacity
// before any other. Only if all of it is
// free elsewhere before, it is assigned there at once; that evicts nothing, and
// victims that are stopping can be assigned to the released capacity.

// heldClaims is the capacity that a binding has claimed.
type heldClaims struct {
	slots []slot
	ids   []string
	free  bool // it is free now
	valid bool // no claim has expired or has another priority
}

// held returns the claims of the binding, except those on clusters to which this
// plan assigns it. It returns nil if there are none, or if some claimed capacity
// will not become free.
func (e *evaluation) held() *heldClaims {
	h := &heldClaims{free: true, valid: true}
	for _, id := range e.Snapshot.ClaimIDs(e.binding.Key()) {
		claim := e.Snapshot.Claim(id)
		if e.changes.assigns(claim.ClusterID) {
			continue
		}
		at := e.layout.indexOf(claim.ClusterID)
		replicas := e.binding.FittingReplicas(&claim.Vec, e.binding.Replicas)
		// A claim for another request, or on a cluster that is infeasible now, is useless.
		if at < 0 || replicas == 0 || claim.Vec != e.binding.TotalAsk(replicas) {
			return nil
		}
		cluster := e.layout.feasible[at]
		free, soon := e.view.capacity(cluster)
		// A claim of higher priority may have used the capacity meanwhile.
		if !Covers(&soon, &claim.Vec) {
			return nil
		}
		s := e.layout.slot(cluster, replicas)
		s.add = replicas
		h.slots, h.ids = append(h.slots, s), append(h.ids, id)
		h.free = h.free && Covers(&free, &claim.Vec)
		h.valid = h.valid && e.Now < claim.Expiry && claim.Priority == e.binding.Priority
	}
	if len(h.slots) == 0 {
		return nil
	}
	return h
}

// heldFor returns the claims if they are for exactly so many replicas and within
// the limits, else nil.
func (e *evaluation) heldFor(missing int) *heldClaims {
	h := e.held()
	if h == nil {
		return nil
	}
	for _, s := range h.slots {
		missing -= s.add
	}
	if missing != 0 || e.layout.limits().maxCapacity(h.slots, nil) < 0 {
		return nil
	}
	return h
}

// retainClaims keeps the claims, or replaces them if they are no longer valid.
func (e *evaluation) retainClaims(h *heldClaims, why *model.Explanation) {
	if !h.valid {
		e.claimAll(h.slots, e.view.stopTime, why)
		return
	}
	e.changes.retained = h.ids
	why.NoEviction = reasonClaimed(h.slots[0].cluster.ID)
}

// reasonClaimed states why nothing more is evicted for a binding with a claim.
func reasonClaimed(cluster string) string {
	return "it claims capacity on " + cluster + " that has yet to become free"
}

// claimedFirst sorts clusters: those with claims of the binding first, then in tie order.
func (e *evaluation) claimedFirst(clusters []*model.Cluster) []*model.Cluster {
	slices.SortStableFunc(e.inTieOrder(clusters), e.view.compareClaims)
	return clusters
}

// claimAll claims capacity for the replicas of slots and returns the IDs of the
// claims by cluster. wait returns how long stopping takes on a cluster, in
// nanoseconds. All claims expire together, since none may expire before the last
// one is free.
func (e *evaluation) claimAll(chosen []slot, wait func(cluster string) int64, why *model.Explanation) map[string]string {
	ids, longest := map[string]string{}, int64(0)
	for _, s := range chosen {
		longest = max(longest, wait(s.cluster.ID))
	}
	for _, s := range chosen {
		claim := e.changes.claim(s, longest)
		ids[s.cluster.ID] = claim.ID
		e.result.RecheckAt = claim.Expiry
	}
	why.NoEviction = reasonClaimed(chosen[0].cluster.ID)
	return ids
}
