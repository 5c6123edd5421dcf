package scheduler

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// resize gives an assignment of what is duplicated as many replicas as are wanted
// on each cluster. Where some are lacking and there is no room, those that are there
// wait for it, if they are as many as the binding keeps when it is shrunk; else it
// leaves the cluster.
func (r *bindingRun) resize(a *model.Assignment, cluster *model.Cluster) {
	b := r.binding
	more := b.Replicas - a.Replicas
	switch {
	case more < 0 && b.Replicas > 0, more > 0 && r.hasRoom(cluster, more):
		r.grow(a, more)
	case more > 0 && b.MinReplicas > 0 && a.Replicas >= b.MinReplicas:
		r.short = append(r.short, a)
	default:
		r.withdraw(a, "the number of replicas was changed")
		return
	}
	r.live = append(r.live, a)
	r.on[a.ClusterID] += a.Replicas
}

// hasRoom is whether a cluster has room for so many replicas now.
func (r *bindingRun) hasRoom(cluster *model.Cluster, replicas int) bool {
	if cluster == nil || cluster.Down {
		return false
	}
	free, _ := r.room(cluster)
	return r.binding.FittingReplicas(&free, replicas) == replicas
}

// duplicate puts all replicas on each cluster, and back on those of which it was
// shrunk.
func (r *bindingRun) duplicate() error {
	if err := r.copies(); err != nil || len(r.short) == 0 {
		return err
	}
	queued := r.out.Queued[r.binding.ID]
	claims := queued > 0 // it waits for more than that
	if !claims {
		r.waits(r.binding.Replicas-r.short[0].Replicas, 0)
	}
	for _, a := range r.short {
		missing := r.binding.Replicas - a.Replicas
		queued += missing
		at := slices.IndexFunc(r.admitted, func(c *model.Cluster) bool { return c.ID == a.ClusterID })
		if claims || at < 0 {
			continue
		}
		if err := r.makeRoom(r.admitted[at:at+1:at+1], missing); err != nil {
			return err
		}
		claims = len(r.plan.Claims)+len(r.kept) > 0
	}
	r.out.Queued[r.binding.ID] = queued
	return nil
}

// copies has the binding on as many clusters as may be, and on none more before
// they are as many as must be.
func (r *bindingRun) copies() error {
	var open []*model.Cluster
	for _, c := range r.admitted {
		if _, has := r.on[c.ID]; !has {
			open = append(open, c)
		}
	}
	x := r.bounds()
	missing := r.moreClusters(x, open)
	if missing == 0 || r.binding.Replicas == 0 {
		return nil
	}
	fits, lacks := r.fitting(open)
	if len(fits) < missing && r.revoke() {
		more, still := r.fitting(lacks)
		fits, lacks = r.byWeight(append(fits, more...)), still
	}
	if n := x.most(nil, r.units(fits)); n > 0 {
		chosen, _ := x.pick(n, r.units(fits))
		r.assignAll(chosen)
		x = x.beside(chosen)
		if missing = r.moreClusters(x, lacks); missing == 0 {
			return nil
		}
		fits = nil // others would be too many
	}
	return r.makeRoomBeside(x, fits, lacks, missing)
}

// moreClusters is on how many more clusters the binding wants to be: on as many as
// may be, and where they are too few, on as many as must be.
func (r *bindingRun) moreClusters(x *bounds, open []*model.Cluster) int {
	loose := *x
	loose.needed, loose.neededGroups = 0, 0
	least := x.least()
	if len(r.on)+len(r.plan.Assignments) == 0 {
		least = max(1, least)
	}
	return max(least, loose.most(nil, r.units(open)))
}

// units is clusters as slots, each of which takes all replicas or none.
func (r *bindingRun) units(clusters []*model.Cluster) []slot {
	slots := make([]slot, len(clusters))
	for i, c := range clusters {
		slots[i] = r.slot(c, 1)
		slots[i].add = r.binding.Replicas
	}
	return slots
}

// fitting is the clusters that hold all replicas, in the order in which they are
// taken, and those that do not.
func (r *bindingRun) fitting(clusters []*model.Cluster) (fits, lacks []*model.Cluster) {
	b := r.binding
	for _, c := range clusters {
		if free, _ := r.room(c); b.FittingReplicas(&free, b.Replicas) == b.Replicas {
			fits = append(fits, c)
		} else {
			lacks = append(lacks, c)
		}
	}
	return r.byWeight(fits), lacks
}

// byWeight sorts clusters, those first on which the binding has claims, then those
// of the greatest weights.
func (r *bindingRun) byWeight(clusters []*model.Cluster) []*model.Cluster {
	weights := r.binding.Weights
	slices.SortStableFunc(clusters, func(x, y *model.Cluster) int {
		return cmp.Or(r.claimOrder(x, y), cmp.Compare(weights[y.ID], weights[x.ID]))
	})
	return clusters
}

// makeRoomBeside has others evicted from one cluster, so that with it and with what
// is free the binding is on as many clusters as must be. All that it will be on are
// claimed: else the victims would take what is free, and be evicted from there, for
// ever.
func (r *bindingRun) makeRoomBeside(x *bounds, fits, lacks []*model.Cluster, missing int) error {
	why := r.waits(r.binding.Replicas, missing*r.binding.Replicas)
	h := r.held()
	switch {
	case h != nil && (h.valid || r.preempts) && r.whole(h.slots) && x.most(h.slots, nil) >= 0:
		r.keep(h, why)
		return nil
	case !r.preempts:
		why.NoEviction = r.noEviction()
		return nil
	}
	leaving, lacking := r.leaving(lacks, r.binding.Replicas)
	room := r.units(append(slices.Clip(fits), r.claimedFirst(leaving)...))
	if n := x.most(nil, room); n > 0 {
		chosen, _ := x.pick(n, room)
		r.claimAll(chosen, r.stopTime, why)
		return nil
	}
	with := func(c *model.Cluster) (most int, clusters []slot) {
		one := r.units([]*model.Cluster{c})
		return x.most(one, room), append(one, room...)
	}
	lacking = slices.DeleteFunc(lacking, func(c *model.Cluster) bool {
		most, _ := with(c)
		return most <= 0
	})
	if len(lacking) == 0 {
		why.NoEviction = onSeveral
		return nil
	}
	return r.evict(lacking, r.binding.Replicas, why, func(c *model.Cluster) []slot {
		chosen, _ := x.pick(with(c))
		return chosen
	})
}

// whole is whether each of slots takes all replicas, as what is duplicated wants it.
func (r *bindingRun) whole(slots []slot) bool {
	return !slices.ContainsFunc(slots, func(s slot) bool { return s.add != r.binding.Replicas })
}
