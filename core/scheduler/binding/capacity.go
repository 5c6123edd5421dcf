package binding

import (
	"cmp"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A view reads the capacity that member clusters offer to a binding.
type view struct {
	snap    *state.Snapshot
	binding *model.Binding
	now     int64

	// hasLeases is set once a cluster with capacity leased to pools of lower priority
	// was read, and revokes if the binding may use that capacity.
	hasLeases, revokes bool
}

// capacity returns the capacity that a cluster offers now, and after all pending
// stops. Capacity leased to other pools is not included unless revokes
// is set.
func (v *view) capacity(c *model.Cluster) (free, soon model.Vector) {
	free, soon = v.snap.ClusterFreeCapacity(c.ID, v.binding.Key(), v.binding.Priority, v.now)
	if v.revokes {
		return free, soon
	}
	if leased := v.snap.ClusterLeasedBelow(c.ID, v.binding.Priority); leased != (model.Vector{}) {
		v.hasLeases = true
		free.Sub(&leased)
		soon.Sub(&leased)
	}
	return free, soon
}

// revoke makes leased capacity of lower priority available if there is any and the
// binding may evict. It reports whether it did.
func (v *view) revoke(preempts bool) bool {
	v.revokes = preempts && v.hasLeases
	return v.revokes
}

// fitsNow reports whether a cluster has free capacity for so many replicas.
func (v *view) fitsNow(c *model.Cluster, replicas int) bool {
	free, _ := v.capacity(c)
	return v.binding.FittingReplicas(&free, replicas) == replicas
}

// splitSoon splits clusters by whether replicas fit after all pending stops.
func (v *view) splitSoon(clusters []*model.Cluster, replicas int) (fit, lack []*model.Cluster) {
	need := v.binding.TotalAsk(replicas)
	for _, c := range clusters {
		if _, soon := v.capacity(c); Covers(&soon, &need) {
			fit = append(fit, c)
		} else {
			lack = append(lack, c)
		}
	}
	return fit, lack
}

// splitNow splits clusters by whether all replicas fit now.
func (v *view) splitNow(clusters []*model.Cluster) (fit, lack []*model.Cluster) {
	for _, c := range clusters {
		if v.fitsNow(c, v.binding.Replicas) {
			fit = append(fit, c)
		} else {
			lack = append(lack, c)
		}
	}
	return fit, lack
}

// killTimeout returns how long an assignment may take to stop, in nanoseconds.
func (v *view) killTimeout(a *model.Assignment) int64 {
	if b := v.snap.Binding(a.Binding); b != nil {
		return b.KillTimeout
	}
	return 0
}

// stopTime returns how long the pending stops on a cluster may take, in nanoseconds.
func (v *view) stopTime(cluster string) (wait int64) {
	for _, a := range v.snap.ClusterAssignments(cluster) {
		if !a.Live() {
			wait = max(wait, v.killTimeout(a))
		}
	}
	return wait
}

// compareClaims orders clusters on which the binding has claims before the others.
func (v *view) compareClaims(x, y *model.Cluster) int {
	rank := func(c *model.Cluster) int {
		if v.snap.HasClaimOn(c.ID, v.binding.Key()) {
			return 0
		}
		return 1
	}
	return cmp.Compare(rank(x), rank(y))
}

// Covers reports whether a capacity suffices for a request in every dimension. A
// negative capacity counts as none.
func Covers(have, want *model.Vector) bool {
	// max: an overcommitted cluster has negative free capacity.
	for d := range want {
		if want[d] > max(0, have[d]) {
			return false
		}
	}
	return true
}

// firstLacking returns the first dimension in which a capacity does not suffice; -1: none.
func firstLacking(have, want *model.Vector) int {
	for d := range want {
		if want[d] > 0 && have[d] < want[d] {
			return d
		}
	}
	return -1
}
