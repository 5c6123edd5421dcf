package reconcile

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
)

// An instance describes one index of a group.
type instance struct {
	live *model.Allocation // nil: none
	// disconnected is an allocation that a replacement runs for until its node
	// returns; nil: none.
	disconnected *model.Allocation
	last         *model.Allocation // highest incarnation; nil: there never was one
	// ended is the one that ended last. It is not the last one if that ran while the node of
	// an earlier one was disconnected, and ended when the node returned.
	ended *model.Allocation
	done  bool // it ran to completion
}

// Group compares a service or batch group with its allocations and returns the missing
// instances, ascending by index. The result is valid until the next New. It adds the
// stops and in-place updates that it decides to the plan, and costs a pass over the
// group's allocations.
func (r *Reconciler) Group(g *model.Group) []Missing {
	instances := r.instances(g)
	from := len(r.buf.missing)
	for index := range g.Count {
		if m, missing := r.inspect(g, index, &instances[index]); missing {
			r.buf.missing = append(r.buf.missing, m)
		}
	}
	return r.buf.missing[from:len(r.buf.missing):len(r.buf.missing)]
}

// instances sorts the group's allocations by index and stops those beyond its count. If
// an index has two live allocations, the older one is retained. Allocations are in
// insertion order, so the older one comes first.
func (r *Reconciler) instances(g *model.Group) []instance {
	found := feasible.Resize(r.buf.instances, g.Count)
	clear(found)
	r.buf.instances = found
	for _, a := range r.byGroup[g.Position] {
		if a.Index >= g.Count {
			if a.Live() {
				r.plan.Stop(a, "the group was scaled down", false)
			}
			continue
		}
		in := &found[a.Index]
		if in.last == nil || a.Incarnation > in.last.Incarnation {
			in.last = a
		}
		in.done = in.done || a.IsDone(r.job)
		if a.Live() {
			r.assignIndex(g, in, a)
		} else if in.ended == nil || endedLater(r.job, a, in.ended) {
			in.ended = a
		}
	}
	for i := range found {
		r.stopDuplicates(&found[i])
	}
	return found
}

// endedLater reports whether a ended after b. Of two that ended at once, it is the one with
// more work to inherit: the other one's, or that of an instance that it ran beside.
func endedLater(j *model.Job, a, b *model.Allocation) bool {
	return a.EndTime > b.EndTime || a.EndTime == b.EndTime && a.RetainedWork(j, a.EndTime) >= b.RetainedWork(j, b.EndTime)
}

// assignIndex gives an index to a live allocation, or stops it if another one
// holds the index. A disconnected allocation with a replacement does not hold it.
// When its node returns it does again, being the older one, unless it would then
// have to be replaced by its own replacement.
func (r *Reconciler) assignIndex(g *model.Group, in *instance, a *model.Allocation) {
	switch {
	case r.isDisconnected(g, a):
		in.disconnected = a
	case in.live == nil:
		in.live = a
	case r.isLost(g, in.live):
		r.plan.Stop(in.live, reasonNodeDown, true)
		in.live = a
	case g.ReplacesOnDisconnect() && !in.live.Group.ContinuesAs(g) && a.Group.ContinuesAs(g):
		r.plan.Stop(in.live, reasonJobUpdated, false)
		in.live = a
	default:
		r.plan.Stop(a, "another allocation has this index", r.isLost(g, a))
	}
}

// stopDuplicates stops the allocations of an index if another one has completed its work.
func (r *Reconciler) stopDuplicates(in *instance) {
	if !in.done {
		return
	}
	for _, a := range []*model.Allocation{in.disconnected, in.live} {
		if a != nil {
			r.plan.Stop(a, "another allocation of this index has completed", false)
		}
	}
	in.live, in.disconnected = nil, nil
}

// inspect reports whether an index below the group's count is missing. An index whose
// work completed is not missing: batch jobs run each index once.
func (r *Reconciler) inspect(g *model.Group, index int, in *instance) (m Missing, missing bool) {
	switch {
	case in.last == nil:
		return Missing{Index: index, Since: r.MissingSince(nil)}, true
	case in.live == nil && in.done:
		return Missing{}, false
	case in.live == nil && in.last == in.disconnected:
		return r.replacementFor(in.disconnected, in.last), true
	case in.live == nil:
		return r.retry(in)
	}
	a := in.live
	if !r.nodesChanged && a.Job.Version == r.job.Version {
		return Missing{}, false
	}
	node := r.snap.Node(a.NodeID)
	switch {
	case r.isKept(g, a, node):
		return Missing{}, false
	case node == nil || node.Status == model.NodeDown:
		r.plan.Stop(a, reasonNodeDown, true)
		return r.heir(a, in.last), true
	case r.expel(g, a, node):
		return r.heir(a, in.last), true
	case node.Drain:
		return r.replace(a, in.last, reasonDraining), true
	case a.Job.Version != r.job.Version:
		return r.update(g, a, in.last, node)
	}
	return Missing{}, false
}

// successor returns the instance that follows an allocation that has ended.
func (r *Reconciler) successor(ended, last *model.Allocation) Missing {
	return Missing{
		Index: last.Index, Incarnation: last.Incarnation + 1, SavedWork: ended.RetainedWork(r.job, ended.EndTime), Since: r.MissingSince(ended),
	}
}

// heir returns the instance that follows an allocation that the plan stops, with
// the work that the allocation has saved so far.
func (r *Reconciler) heir(a, last *model.Allocation) Missing {
	m := r.successor(a, last)
	m.SavedWork = a.RetainedWork(r.job, r.now)
	return m
}

// replace returns the instance that takes over from a running allocation.
func (r *Reconciler) replace(a, last *model.Allocation, reason string) Missing {
	return Missing{
		Index: a.Index, Incarnation: last.Incarnation + 1, Replaces: a, Reason: reason,
		SavedWork: a.RetainedWork(r.job, r.now), Since: r.now,
	}
}

// update moves an allocation to the job's newest version: in place if its
// resources are unchanged and its node still admits it, else by replacement.
func (r *Reconciler) update(g *model.Group, a, last *model.Allocation, node *model.Node) (Missing, bool) {
	if !a.Group.ContinuesAs(g) || !g.CanRemain(node) {
		return r.replace(a, last, reasonJobUpdated), true
	}
	r.updateInPlace(g, a)
	return Missing{}, false
}
