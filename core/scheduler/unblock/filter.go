package unblock

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
)

// A Filter reports whether blocked evaluations may be able to use a node or a
// member cluster.
//
// It distributes capacity: an evaluation that it accepts is assumed to use the
// capacity that it requests, and the following ones are checked against the rest. Deferred lists the
// locations where that caused a rejection. They have to be checked again once the
// accepted evaluations were processed, because those may be placed on other nodes.
type Filter struct {
	Snap     *state.Snapshot
	Policies *policy.Set
	Now      int64 // Unix nanoseconds
	// Deferred is a set of node IDs and cluster locations.
	Deferred map[string]struct{}

	left    map[string]*model.Vector // undistributed capacity by location
	node    node                     // the node checked last
	cluster cluster                  // the cluster checked last
	inputs  demandInputs             // see demandInputs
}

// MayPlace reports whether some group that the evaluation could not place may go to
// the node, or replicas of its binding to the cluster, at a location. It also returns true if
// a rule of a group concerns several nodes, because another one may have become feasible, even
// if this one was removed. *cache stores the demand of the evaluation from one call to the next.
func (f *Filter) MayPlace(eval *model.Evaluation, location string, cache *any) bool {
	id, isCluster := model.ParseClusterLocation(location)
	switch isBinding := eval.Type == model.JobBinding; {
	case isCluster != isBinding:
		return false
	case isCluster:
		return f.mayAssign(eval, id, cache)
	}
	d := f.demand(eval, cache)
	if !f.node.load(f.Snap, location) {
		return d != nil && d.affectsOtherNodes
	}
	if d == nil {
		return true
	}
	if d.exceeds(f.node.freeable(d.ceiling)) {
		return d.affectsOtherNodes
	}
	accepted := d.affectsOtherNodes
	for i, g := range d.groups {
		// Every group is checked, since accepted ones distribute capacity.
		o := offer{filter: f, node: &f.node, group: g, excludesItself: d.excludesItself[i], demand: d, eval: eval}
		accepted = o.isAccepted() || accepted
	}
	return accepted
}

// Excludes reports whether a node has too little capacity for every group that the
// evaluation could not place, even after all possible evictions. For cache see MayPlace.
func (f *Filter) Excludes(eval *model.Evaluation, nodeID string, cache *any) bool {
	d := f.demand(eval, cache)
	return d != nil && !d.affectsOtherNodes && (!f.node.load(f.Snap, nodeID) || d.exceeds(f.node.freeable(d.ceiling)))
}

// deferLocation records that capacity there is distributed already.
func (f *Filter) deferLocation(location string) {
	if f.Deferred == nil {
		f.Deferred = map[string]struct{}{}
	}
	f.Deferred[location] = struct{}{}
}

// setLeft records the undistributed capacity of a location.
func (f *Filter) setLeft(location string, left *model.Vector) {
	if f.left == nil {
		f.left = map[string]*model.Vector{}
	}
	f.left[location] = left
}
