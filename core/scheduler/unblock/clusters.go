package unblock

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	search "github.com/cede-scheduler/cede/core/preempt/binding"
	"github.com/cede-scheduler/cede/core/scheduler/binding"
	"github.com/cede-scheduler/cede/core/state"
)

// A bindingDemand is the capacity that an evaluation of a binding is blocked on.
type bindingDemand struct {
	binding *model.Binding
	missing int          // replicas; of a duplicated binding those on one cluster
	least   int          // replicas for which a wake-up is worthwhile
	need    model.Vector // capacity that has to be free after evictions
	ceiling int64        // highest priority that may be evicted
}

// computeBindingDemand returns nil if the binding was removed or stopped.
func (f *Filter) computeBindingDemand(eval *model.Evaluation) *bindingDemand {
	b := f.Snap.Binding(eval.JobKey())
	if b == nil || b.Stopped {
		return nil
	}
	d := &bindingDemand{binding: b, missing: b.Replicas, least: 1, ceiling: math.MinInt64}
	if queued := eval.Queued[b.ID]; queued > 0 && !b.Duplicated {
		d.missing = queued
	}
	if b.Duplicated {
		d.missing = f.missingPerCluster(b)
	}
	if b.Duplicated || b.MaxClusters == 1 { // all of them or none on one cluster
		d.least = d.missing
	}
	d.need = b.TotalAsk(d.missing)
	config := f.Snap.Config()
	if version, err := f.Policies.Select("", config.Policy); err == nil && binding.MayPreempt(config, b) {
		d.ceiling = search.Ceiling(b.Priority, version, config.PriorityDelta)
		if version.Info().MultiCluster && !b.Duplicated { // any replica on any cluster helps
			d.need = b.TotalAsk(1)
		}
	}
	return d
}

// missingPerCluster returns the smallest number of replicas that a duplicated
// binding lacks on a cluster: all, or those by which it was shrunk.
func (f *Filter) missingPerCluster(b *model.Binding) int {
	missing := b.Replicas
	if b.MinReplicas > 0 {
		for _, a := range f.Snap.BindingAssignments(b.Key()) {
			if a.Live() && a.Replicas < b.Replicas {
				missing = min(missing, b.Replicas-a.Replicas)
			}
		}
	}
	return missing
}

// A cluster holds the data of one member cluster that a filter reads. It is read once
// for all evaluations that are checked against the cluster.
type cluster struct {
	id         string
	model      *model.Cluster // nil: it was removed or is down
	hasClaims  bool
	free, soon model.Vector // now, and after pending stops; set only if there are no claims
	reclaim    []reclaimable
}

// reclaimable is the capacity that the eviction of everything up to a priority frees.
type reclaimable struct {
	priority int32
	free     model.Vector
}

// load reads a cluster unless it is loaded. Without claims, the capacity is the same
// for every binding and is computed here.
func (c *cluster) load(snap *state.Snapshot, id string, now int64) {
	if c.id == id {
		return
	}
	*c = cluster{id: id, model: snap.Cluster(id), hasClaims: len(snap.ClusterClaims(id)) > 0}
	if c.model != nil && c.model.Down {
		c.model = nil
	}
	if !c.hasClaims {
		c.free, c.soon = snap.ClusterFreeCapacity(id, model.JobKey{}, 0, now)
	}
}

// capacity returns the capacity that the cluster offers to a binding, now and soon.
// With claims, it depends on the priority of the binding.
func (c *cluster) capacity(snap *state.Snapshot, b *model.Binding, now int64) (free, soon model.Vector) {
	if !c.hasClaims {
		return c.free, c.soon
	}
	free, soon = snap.ClusterFreeCapacity(c.id, b.Key(), b.Priority, now)
	if !binding.MayPreempt(snap.Config(), b) {
		leased := snap.ClusterLeasedBelow(c.id, b.Priority)
		free.Sub(&leased)
		soon.Sub(&leased)
	}
	return free, soon
}

// mayAssign reports whether a blocked binding may use a member cluster: a replica fits,
// or all of them if they must be together, or evictions there free enough for all that
// are missing. It may return true for a binding that then finds no capacity, which
// costs an evaluation. If it returns false because the capacity is offered to others
// first, the location is deferred, so that no wake-up is lost.
func (f *Filter) mayAssign(eval *model.Evaluation, id string, cache *any) bool {
	var d *bindingDemand
	if known := f.demand(eval, cache); known != nil {
		d = known.binding
	}
	if d == nil {
		return true
	}
	c, b := &f.cluster, d.binding
	c.load(f.Snap, id, f.Now)
	if c.model == nil || !b.IsFeasible(c.model) {
		return false
	}
	free, soon := c.capacity(f.Snap, b, f.Now)
	if f.mayFree(d, soon) {
		return true
	}
	if b.FittingReplicas(&free, d.least) < d.least {
		return false
	}
	location := model.ClusterLocation(id)
	left := f.left[location]
	if left == nil {
		left = &free
		f.setLeft(location, left)
	}
	fit := b.FittingReplicas(left, d.missing)
	if fit < d.least {
		f.deferLocation(location)
		return false
	}
	used := b.TotalAsk(fit)
	left.Sub(&used)
	return true
}

// mayFree reports whether the binding might claim capacity on the loaded cluster:
// the capacity that is free soon suffices, if necessary after evictions.
func (f *Filter) mayFree(d *bindingDemand, soon model.Vector) bool {
	if d.ceiling == math.MinInt64 {
		return false
	}
	if binding.Covers(&soon, &d.need) {
		return true
	}
	c := &f.cluster
	if c.reclaim == nil {
		c.reclaim = findReclaimable(f.Snap, c.id)
	}
	at, _ := slices.BinarySearchFunc(c.reclaim, d.ceiling, func(r reclaimable, ceiling int64) int {
		if int64(r.priority) <= ceiling {
			return -1
		}
		return 1
	})
	if at == 0 {
		return false
	}
	soon.Add(&c.reclaim[at-1].free)
	return binding.Covers(&soon, &d.need)
}

// findReclaimable returns the reclaimable capacity of a cluster, cumulated by ascending
// priority. It never returns nil. Budgets and tolerations are ignored, so it is an
// upper bound.
func findReclaimable(snap *state.Snapshot, id string) []reclaimable {
	list := []reclaimable{}
	for a, victim := range snap.ClusterWorkload(id) {
		if a.Live() && victim != nil && !victim.ClusterScoped {
			list = append(list, reclaimable{victim.Priority, a.Vec})
		}
	}
	slices.SortFunc(list, func(x, y reclaimable) int { return cmp.Compare(x.priority, y.priority) })
	for i := 1; i < len(list); i++ {
		list[i].free.Add(&list[i-1].free)
	}
	return list
}
