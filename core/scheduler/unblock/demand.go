package unblock

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
)

// A demand is the capacity that an evaluation is blocked on. It is stored with the
// evaluation, since a blocked one is never modified and filters read it for each change.
type demand struct {
	inputs  demandInputs
	ceiling int64 // highest priority that may be evicted
	// affectsOtherNodes is set if capacity on one node may make another one feasible.
	affectsOtherNodes bool
	smallest          []amount  // minimum over all groups, by dimension that all of them request
	few               [2]amount // backs smallest if it suffices, near the fields that are read with it
	groups            []*model.Group
	excludesItself    []bool // by group: at most one instance may be on a node
	firstVersion      bool   // no allocation of another version of the job can be live
	// binding is set instead of the above for an evaluation of a binding. If it is nil
	// there, the evaluation is not blocked any more.
	binding *bindingDemand
}

// demandInputs identify the inputs of demands besides the evaluation. A
// cached demand with other inputs is stale.
type demandInputs struct {
	policies *policy.Set
	config   uint64 // ModifyIndex
}

// demandInputs returns the filter's inputs. They never change for one filter.
func (f *Filter) demandInputs() demandInputs {
	if f.inputs.policies == nil {
		f.inputs = demandInputs{f.Policies, f.Snap.Config().ModifyIndex}
	}
	return f.inputs
}

// An amount is a quantity of a dimension.
type amount struct {
	dim  int
	size int64
}

// demand returns the demand of an evaluation, or nil if that is unknown, in which case
// the evaluation should be woken. A demand is also stored in *cache.
func (f *Filter) demand(eval *model.Evaluation, cache *any) *demand {
	if d, ok := (*cache).(*demand); ok && d.inputs == f.demandInputs() {
		return d
	}
	d := f.computeDemand(eval)
	if d != nil {
		*cache = d
	}
	return d
}

// computeDemand returns nil if the job or its policy is gone: the evaluation then finds
// out itself.
func (f *Filter) computeDemand(eval *model.Evaluation) *demand {
	if eval.Type == model.JobBinding {
		return &demand{inputs: f.demandInputs(), binding: f.computeBindingDemand(eval)}
	}
	job := f.Snap.Job(eval.JobKey())
	if job == nil || job.Stopped {
		return nil
	}
	config := f.Snap.Config()
	version, err := f.Policies.Select(job.Policy, config.Policy)
	if err != nil {
		return nil
	}
	d := &demand{
		inputs: f.demandInputs(), ceiling: math.MinInt64,
		firstVersion: job.Version == 0 && job.ModifyIndex == job.CreateIndex,
	}
	if placement.MayPreempt(f.Snap, job) {
		d.ceiling = preempt.Ceiling(job.Priority, version, config.PriorityDelta)
	}
	// Capacity anywhere may receive an instance that makes room for these.
	d.affectsOtherNodes = placement.MoveRate(f.Snap, job) != nil
	// So may a match of a co-location term: another one in the domain is not the last any more.
	d.affectsOtherNodes = d.affectsOtherNodes || job.Colocates()
	for _, g := range job.Groups {
		if _, failed := eval.Failed[g.Name]; failed {
			d.groups, d.excludesItself = append(d.groups, g), append(d.excludesItself, excludesItself(g))
			d.affectsOtherNodes = d.affectsOtherNodes || f.affectsOtherNodes(g)
		}
	}
	if job.Version == 0 { // in later versions, replaced allocations free capacity as well
		d.findSmallest()
	}
	return d
}

// excludesItself reports whether instances of the group exclude each other from a node.
func excludesItself(g *model.Group) bool {
	return slices.ContainsFunc(g.Separate, func(t model.LabelTerm) bool { return feasible.IsNodeLocal(&t) && t.Matches(g.Labels) })
}

// findSmallest computes the dimensions that every group requests. A node that lacks the
// least of them helps no group.
func (d *demand) findSmallest() {
	d.smallest = d.few[:0]
	for dim := range model.MaxDimensions {
		least := int64(math.MaxInt64)
		for _, g := range d.groups {
			least = min(least, g.Ask.Vec[dim])
		}
		if least > 0 && least < math.MaxInt64 {
			d.smallest = append(d.smallest, amount{dim, least})
		}
	}
}

// exceeds reports whether a capacity does not even cover the smallest request.
func (d *demand) exceeds(free *model.Vector) bool {
	for _, least := range d.smallest {
		if free[least.dim] < least.size {
			return true
		}
	}
	return false
}

// affectsOtherNodes reports whether a rule, of the group or of jobs that repel it,
// may let capacity on one node make another one feasible.
func (f *Filter) affectsOtherNodes(g *model.Group) bool {
	for i := range g.Constraints {
		if g.Constraints[i].Operator == model.OpDistinctProperty {
			return true
		}
	}
	if len(g.Spread) > 0 || feasible.SpansNodes(g.Separate) {
		return true
	}
	if len(g.Labels) == 0 {
		return false
	}
	for key := range f.Snap.JobsSeparatedFrom(g.Labels) {
		if feasible.MayRepelDomains(f.Snap, key) {
			return true
		}
	}
	return false
}
