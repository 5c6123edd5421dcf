package scheduler

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// nodeIsDown is why allocations of nodes that are down end.
const nodeIsDown = "its node is down"

// want is an instance that shall be placed.
type want struct {
	index       int
	incarnation int
	saved       int64 // work it inherits
	// replaces is an allocation that goes once this one has a place: it moves
	// off a draining node, or to a new version of the job. nil: none.
	replaces *model.Allocation
	reason   string
	since    int64 // when it began to be missing
}

// instance is what is known of one index of a group.
type instance struct {
	live *model.Allocation // nil: none
	away *model.Allocation // one that others may stand in for until its node returns; nil: none
	last *model.Allocation // highest incarnation seen; nil: there never was one
	done bool              // it ran to its end
}

// reconcile compares a counted group with its allocations: it stops what is too
// many or lost, updates in place what can be, and returns what must be placed,
// ascending by index.
func (r *run) reconcile(g *model.Group) []want {
	instances := r.instances(g)
	from := len(r.s.wants)
	for index := range g.Count {
		if w, missing := r.inspect(g, index, &instances[index]); missing {
			r.s.wants = append(r.s.wants, w)
		}
	}
	return r.s.wants[from:len(r.s.wants):len(r.s.wants)]
}

// instances sorts the group's allocations by index, and stops those beyond its
// count. Of two live ones under one index the older stays.
func (r *run) instances(g *model.Group) []instance {
	found := resized(r.s.instances, g.Count)
	clear(found)
	r.s.instances = found
	for _, a := range r.byGroup[g.Position] {
		if a.Index >= g.Count {
			if a.Live() {
				r.plan.stop(a, "the group was scaled down", false)
			}
			continue
		}
		in := &found[a.Index]
		if in.last == nil || a.Incarnation > in.last.Incarnation {
			in.last = a
		}
		in.done = in.done || a.Client == model.ClientComplete && a.Desired == model.DesiredRun
		if a.Live() {
			r.hold(g, in, a)
		}
	}
	for i := range found {
		r.endSurplus(g, &found[i])
	}
	return found
}

// hold gives an index to a live allocation, or ends it where another one has the index.
// One that another stands in for while its node is silent does not hold it, and gets it
// back when the node returns, as it is the older one: unless it would have to be replaced
// by what stands in for it.
func (r *run) hold(g *model.Group, in *instance, a *model.Allocation) {
	switch {
	case r.isAway(g, a):
		in.away = a
	case in.live == nil:
		in.live = a
	case r.isLost(g, in.live):
		r.plan.stop(in.live, nodeIsDown, true)
		in.live = a
	case g.ReplacesOnDisconnect() && !sameInstance(in.live.Group, g) && sameInstance(a.Group, g):
		r.plan.stop(in.live, "the job was updated", false)
		in.live = a
	default:
		r.plan.stop(a, "another allocation has this index", r.isLost(g, a))
	}
}

// endSurplus ends those that go on with work that another one of the index has done.
func (r *run) endSurplus(g *model.Group, in *instance) {
	if !in.done || !g.ReplacesOnDisconnect() {
		return
	}
	for _, a := range []*model.Allocation{in.away, in.live} {
		if a != nil {
			r.plan.stop(a, "another allocation of this index has done the work", false)
		}
	}
	in.live, in.away = nil, nil
}

// inspect decides about one index below the group's count.
func (r *run) inspect(g *model.Group, index int, in *instance) (w want, missing bool) {
	switch {
	case in.last == nil:
		return want{index: index, since: r.missingSince(nil)}, true
	case in.live == nil && in.done:
		return want{}, false
	case in.live == nil && in.last == in.away:
		return r.standIn(g, in.away, in.last), true
	case in.live == nil:
		return r.retry(in.last, index)
	}
	a := in.live
	if !r.moving && a.Job.Version == r.job.Version {
		return want{}, false
	}
	node := r.base.Node(a.NodeID)
	switch {
	case r.awaits(g, a, node):
		return want{}, false
	case node == nil || node.Status == model.NodeDown:
		r.plan.stop(a, nodeIsDown, true)
		return r.heir(g, a, in.last), true
	case r.banish(g, a, node):
		return r.heir(g, a, in.last), true
	case node.Drain:
		return r.replacement(a, in.last, "its node is draining"), true
	case a.Job.Version != r.job.Version:
		return r.outdated(g, a, in.last, node)
	}
	return want{}, false
}

// successor follows an allocation that is gone.
func (r *run) successor(last *model.Allocation, index int) want {
	return want{index: index, incarnation: last.Incarnation + 1, saved: last.RetainedWork(), since: r.missingSince(last)}
}

// retry is successor for one that may have failed, and then may have to wait.
func (r *run) retry(last *model.Allocation, index int) (want, bool) {
	at := r.retryAt(last)
	if at > r.now {
		return want{}, false
	}
	w := r.successor(last, index)
	w.since = max(w.since, at)
	return w, true
}

// heir follows an allocation that the plan stops where it is, and inherits its work.
func (r *run) heir(g *model.Group, a, last *model.Allocation) want {
	w := r.successor(last, a.Index)
	w.saved = a.SavedWork + g.SavedWork(a.Age(r.now))
	return w
}

// banish stops an allocation that a taint of its node drives out. One that may stay for
// some time yet is looked at again then.
func (r *run) banish(g *model.Group, a *model.Allocation, node *model.Node) bool {
	at, taint := g.NoExecuteAt(node, a.CreateTime)
	switch {
	case taint == nil:
		return false
	case at > r.now:
		r.leavesAt(at)
		return false
	}
	r.plan.stop(a, "its node has the taint "+taint.String(), false)
	return true
}

// missingSince is when an instance began to wait for a place: when the one
// before it was gone, or without one, when the job was submitted.
func (r *run) missingSince(last *model.Allocation) int64 {
	switch {
	case last == nil:
		return r.job.SubmitTime
	case last.Live():
		return r.now // it goes only now
	}
	return max(last.EndTime, r.job.SubmitTime)
}

// replacement takes over from an allocation that still runs.
func (r *run) replacement(a, last *model.Allocation, reason string) want {
	return want{
		index: a.Index, incarnation: last.Incarnation + 1, replaces: a, reason: reason,
		saved: a.SavedWork + a.Group.SavedWork(a.Age(r.now)), since: r.now,
	}
}

// outdated brings an allocation to the job's newest version: in place where
// what it runs with stays the same and its node still may take it, else by
// replacement.
func (r *run) outdated(g *model.Group, a, last *model.Allocation, node *model.Node) (want, bool) {
	if !sameInstance(a.Group, g) || !g.CanRemain(node) {
		return r.replacement(a, last, "the job was updated"), true
	}
	next := *a
	next.Job, next.Group = r.job, g
	r.plan.update(&next)
	return want{}, false
}

// sameInstance is whether an instance of a may go on as one of b.
func sameInstance(a, b *model.Group) bool {
	return maps.Equal(a.Resources, b.Resources) && slices.Equal(a.Ask.Ports, b.Ask.Ports) &&
		slices.EqualFunc(a.Devices, b.Devices, sameDevice) && a.Duration == b.Duration &&
		a.Checkpoint == b.Checkpoint && a.KillTimeout == b.KillTimeout
}

func sameDevice(a, b model.DeviceRequest) bool {
	return a.ID == b.ID && a.Count == b.Count && slices.EqualFunc(a.Constraints, b.Constraints,
		func(c, d model.Constraint) bool { return c.String() == d.String() })
}

// stopForeign ends allocations of groups that the job no longer has.
func (r *run) stopForeign() {
	for _, a := range r.s.allocs {
		if a.Job != r.job && a.Live() && r.job.Group(a.Group.Name) == nil {
			r.plan.stop(a, "the job no longer has this group", false)
		}
	}
}
