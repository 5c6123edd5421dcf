package feasible

import (
	"github.com/cede-scheduler/cede/core/model"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// softTaintWeight is the weight of a taint that is a preference, in units of
// affinity weights. It equals their maximum.
const softTaintWeight = 100

// Components returns the components of a node's rank besides its fit, each in
// [-1, 1]. Bit k of present is set if values[k] counts. It is part of preempt.Rules.
func (r *Rules) Components(pos int32) (values [sdk.NumComponents]float64, present uint8) {
	r.Prepare()
	preferences := r.affinityTotal != 0 || len(r.spreads) != 0 || r.softTaints
	if r.onNode.isEmpty() && !preferences {
		return values, present
	}
	set := func(k sdk.Component, v float64) {
		values[k] = v
		present |= 1 << k
	}
	if n := r.onNode.at(pos); n > 0 && r.group.Count > 0 {
		set(sdk.AntiAffinity, -float64(n+1)/float64(r.group.Count))
	}
	if !preferences {
		return values, present
	}
	node := r.ctx.State.Snapshot().NodeAt(pos)
	if v := r.affinity(node); v != 0 {
		set(sdk.Affinity, v)
	}
	if v := r.spreadBoost(node); v != 0 {
		set(sdk.Spread, v)
	}
	return values, present
}

// affinity returns the sum of the weights of the affinities that hold, divided by
// the sum of all weights' magnitudes. A soft taint that the group does not
// tolerate is an affinity against the node.
func (r *Rules) affinity(n *model.Node) float64 {
	sum, total := 0.0, r.affinityTotal
	if r.softTaints {
		against := float64(softTaintWeight * r.group.CountSoftTaints(n))
		sum, total = -against, total+against
	}
	if total == 0 {
		return 0
	}
	for i := range r.group.Affinities {
		a := &r.group.Affinities[i]
		if value, set := n.Attribute(a.Attribute); a.Holds(value, set) {
			sum += float64(a.Weight)
		}
	}
	return sum / total
}

// spreadBoost returns the mean of the spreads' boosts, weighted by the spreads.
func (r *Rules) spreadBoost(n *model.Node) float64 {
	sum, weights := 0.0, 0.0
	for _, s := range r.spreads {
		// The explicit conversion forbids a fused multiply-add, which would make
		// scores differ between architectures.
		sum += float64(s.boost(n) * float64(s.rule.Weight))
		weights += float64(s.rule.Weight)
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}
