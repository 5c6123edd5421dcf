package binding

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// resize adapts a duplicated assignment to the number of replicas per cluster. If there
// is too little capacity, the present replicas are retained and wait for it, provided
// that they are at least the minimum to which the binding may be shrunk; else they are
// withdrawn. Shrinking needs no capacity and always succeeds.
func (e *evaluation) resize(a *model.Assignment, cluster *model.Cluster) {
	b := e.binding
	more := b.Replicas - a.Replicas
	switch {
	case more < 0 && b.Replicas > 0, more > 0 && cluster != nil && !cluster.Down && e.view.fitsNow(cluster, more):
		e.changes.grow(a, more)
	case more > 0 && b.MinReplicas > 0 && a.Replicas >= b.MinReplicas:
		e.short = append(e.short, a)
	default:
		e.changes.withdraw(a, "the number of replicas was changed")
		return
	}
	e.retain(a)
}

// placeDuplicated assigns all replicas to each cluster, and returns those to which
// the binding was shrunk to full size.
func (e *evaluation) placeDuplicated() error {
	if err := e.addClusters(); err != nil || len(e.short) == 0 {
		return err
	}
	queued := e.result.Queued
	waits := queued > 0 // further clusters come first
	if !waits {
		e.wait(e.binding.Replicas-e.short[0].Replicas, 0)
	}
	// One claim at a time: the next evaluation continues with the other clusters.
	for _, a := range e.short {
		missing := e.binding.Replicas - a.Replicas
		queued += missing
		at := e.layout.indexOf(a.ClusterID)
		if waits || at < 0 {
			continue
		}
		if err := e.preemptOn(e.layout.feasible[at:at+1:at+1], missing); err != nil {
			return err
		}
		waits = len(e.changes.group.Claims)+len(e.changes.retained) > 0
	}
	e.result.Queued = queued
	return nil
}

// addClusters assigns the binding to as many further clusters as possible, and to
// none before the required number is possible.
func (e *evaluation) addClusters() error {
	l := &e.layout
	var open []*model.Cluster
	for _, c := range l.feasible {
		if _, has := l.on[c.ID]; !has {
			open = append(open, c)
		}
	}
	// Copies are all-or-none per cluster, so every cluster counts as one unit.
	x := l.limits()
	missing := e.desiredClusters(x, open)
	if missing == 0 || e.binding.Replicas == 0 {
		return nil
	}
	fit, lack := e.view.splitNow(open)
	fit = l.sortByWeight(fit)
	if len(fit) < missing && e.view.revoke(e.preempts) {
		more, still := e.view.splitNow(lack)
		fit, lack = l.sortByWeight(append(fit, l.sortByWeight(more)...)), still
	}
	if n := x.maxCapacity(nil, l.units(fit)); n > 0 {
		chosen, _ := x.pick(n, l.units(fit))
		e.changes.assignAll(chosen)
		x = x.with(chosen)
		if missing = e.desiredClusters(x, lack); missing == 0 {
			return nil
		}
		fit = nil // the rest of them would exceed the limits
	}
	return e.preemptForCluster(x, fit, lack, missing)
}

// desiredClusters returns on how many further clusters the binding should be: on as
// many as possible, and if those are too few, on as many as required. A binding that is
// nowhere yet desires one cluster even if its limits permit none.
func (e *evaluation) desiredClusters(x *spreadLimits, open []*model.Cluster) int {
	loose := *x
	loose.minNew, loose.minNewGroups = 0, 0
	least := x.minClusters()
	if len(e.layout.on)+len(e.changes.group.Assignments) == 0 {
		least = max(1, least)
	}
	return max(least, loose.maxCapacity(nil, e.layout.units(open)))
}

// preemptForCluster evicts from one of the lacking clusters, so that with it and
// the fitting ones the binding is on as many clusters as required. It claims all
// of them: otherwise the victims would be assigned to the fitting ones and be
// evicted from there, without end.
func (e *evaluation) preemptForCluster(x *spreadLimits, fit, lack []*model.Cluster, missing int) error {
	l, replicas := &e.layout, e.binding.Replicas
	why := e.wait(replicas, missing*replicas)
	h := e.held()
	switch {
	case h != nil && (h.valid || e.preempts) && isWhole(h.slots, replicas) && x.maxCapacity(h.slots, nil) >= 0:
		e.retainClaims(h, why)
		return nil
	case !e.preempts:
		why.NoEviction = e.noEviction()
		return nil
	}
	stopping, lacking := e.view.splitSoon(lack, replicas)
	offers := l.units(append(slices.Clip(fit), e.claimedFirst(stopping)...))
	if n := x.maxCapacity(nil, offers); n > 0 {
		chosen, _ := x.pick(n, offers)
		e.claimAll(chosen, e.view.stopTime, why)
		return nil
	}
	with := func(c *model.Cluster) (most int, clusters []slot) {
		one := l.units([]*model.Cluster{c})
		return x.maxCapacity(one, offers), append(one, offers...)
	}
	// Clusters that do not complete the limits even after evictions are not searched.
	lacking = slices.DeleteFunc(lacking, func(c *model.Cluster) bool {
		most, _ := with(c)
		return most <= 0
	})
	if len(lacking) == 0 {
		why.NoEviction = reasonOnSeveral
		return nil
	}
	return e.evict(lacking, replicas, why, func(c *model.Cluster) []slot {
		chosen, _ := x.pick(with(c))
		return chosen
	})
}

// isWhole reports whether each slot gets all replicas. A claim for fewer replicas
// cannot hold a copy.
func isWhole(slots []slot, replicas int) bool {
	return !slices.ContainsFunc(slots, func(s slot) bool { return s.add != replicas })
}
