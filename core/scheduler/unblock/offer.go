package unblock

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// An offer is a node offered to a group of an evaluation. It lives for one check.
type offer struct {
	filter         *Filter
	node           *node
	group          *model.Group
	excludesItself bool // see demand.excludesItself
	demand         *demand
	eval           *model.Evaluation
}

// isAccepted reports whether the group may use the node, and if so, distributes capacity.
func (o *offer) isAccepted() bool {
	n := o.node
	if !n.eligible {
		return false
	}
	if !o.demand.firstVersion && o.replaces() {
		return true
	}
	// Claims only reduce capacity, so the cheap check without them comes first.
	if !o.fits(&n.free) || o.isExcludedByOwnJob() || !o.group.IsFeasible(n.model) {
		return false
	}
	free := n.free
	if n.hasClaims {
		if free = o.freeWithClaims(); !o.fits(&free) {
			return false
		}
	}
	left := o.filter.left[n.id]
	if left == nil {
		left = &model.Vector{}
		*left = free
	} else if !o.fits(left) {
		o.filter.deferLocation(n.id)
		return false
	}
	o.distribute(left)
	return true
}

// replaces reports whether an allocation of an earlier version of the job is on the
// node: its replacement can use its capacity.
func (o *offer) replaces() bool {
	return o.group.Job.Version > 0 && slices.ContainsFunc(o.node.rows, func(row state.Row) bool {
		return row.Group.Job.Version != o.group.Job.Version && row.Group.Job.Key() == o.group.Job.Key()
	})
}

// isExcludedByOwnJob reports whether an allocation of the group's own job excludes
// it from the node. Such an allocation is never evicted for it, and when it ends the
// node is offered again. Other jobs may exclude it as well, but rarely; the
// evaluation is then woken in vain.
func (o *offer) isExcludedByOwnJob() bool {
	g, n := o.group, o.node.model
	if len(g.Labels)+len(g.Separate) == 0 {
		return false
	}
	rows := o.node.rowsOf(g.Job.Priority)
	for i := range rows {
		other := rows[i].Group
		switch {
		case other.Job != g.Job && o.demand.firstVersion:
		case o.excludesItself && other.Job == g.Job && other.SeparationClass() == g.SeparationClass():
			return true
		case other.Job.Key() == g.Job.Key() && (feasible.Repels(g, other, n) || feasible.Repels(other, g, n)):
			return true
		}
	}
	return false
}

// freeWithClaims returns the capacity that the node offers to the group before
// anything is distributed.
func (o *offer) freeWithClaims() (whole model.Vector) {
	var claims model.Vector
	snap := o.filter.Snap
	free := snap.FreeCapacityFor(o.node.pos, o.group.Job.Key(), o.group.Job.Priority, o.filter.Now, &claims)
	for d := range snap.Dims().Len() {
		whole[d] = free.Free[d*free.Stride]
	}
	return whole
}

// fits reports whether one instance fits into a free capacity, or would after the
// eviction of everything up to the ceiling. Each dimension is tested alone, so it is an
// upper bound.
func (o *offer) fits(free *model.Vector) bool {
	ask, rows := &o.group.Ask, o.node.rows
	for _, d := range ask.Dims {
		left := free[d]
		for at := 0; at < len(rows) && left < ask.Vec[d] && int64(rows[at].Priority) <= o.demand.ceiling; at++ {
			left += rows[at].Group.Ask.Vec[d]
		}
		if left < ask.Vec[d] {
			return false
		}
	}
	return true
}

// distribute subtracts the group's expected use: one instance, and as many more as
// it needs and fit. A gang is not counted, because it may need other nodes as well
// and then uses nothing here.
func (o *offer) distribute(left *model.Vector) {
	if o.group.Job.AllAtOnce {
		return
	}
	o.filter.setLeft(o.node.id, left)
	instances := max(1, o.eval.Queued[o.group.Name])
	if o.group.Job.Type.PerNode() {
		instances = 1
	}
	for ; instances > 0 && o.fits(left); instances-- {
		left.Sub(&o.group.Ask.Vec)
	}
}
