package scheduler

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/binding"
)

// bindingNeed is what an evaluation of a binding waits for.
type bindingNeed struct {
	binding *model.Binding
	missing int          // replicas; of what is duplicated, on one cluster
	least   int          // replicas for which it is worth waking
	whole   model.Vector // what all that are missing take: eviction makes room for no less
	ceiling int64        // highest priority that may be evicted
}

// bindingNeed is nil when whatever the evaluation waits for, it waits no longer.
func (s *Screen) bindingNeed(eval *model.Evaluation) *bindingNeed {
	b := s.Snap.Binding(eval.JobKey())
	if b == nil || b.Stopped {
		return nil
	}
	n := &bindingNeed{binding: b, missing: b.Replicas, least: 1, ceiling: math.MinInt64}
	if queued := eval.Queued[b.ID]; queued > 0 && !b.Duplicated {
		n.missing = queued
	}
	if b.Duplicated {
		n.missing = s.short(b)
	}
	if b.Duplicated || b.MaxClusters == 1 { // all of them or none on one cluster
		n.least = n.missing
	}
	n.whole = b.TotalAsk(n.missing)
	config := s.Snap.Config()
	if version, err := s.Policies.Select("", config.Policy); err == nil && mayPreempt(config, b) {
		n.ceiling = binding.Ceiling(b.Priority, version, config.PriorityDelta)
		if version.Info().MultiCluster && !b.Duplicated { // every replica counts
			n.whole = b.TotalAsk(1)
		}
	}
	return n
}

// short is how many replicas of a duplicated binding are lacking on some cluster: all
// of them, or as many as it was shrunk by.
func (s *Screen) short(b *model.Binding) int {
	missing := b.Replicas
	if b.MinReplicas > 0 {
		for _, a := range s.Snap.BindingAssignments(b.Key()) {
			if a.Live() && a.Replicas < b.Replicas {
				missing = min(missing, b.Replicas-a.Replicas)
			}
		}
	}
	return missing
}

// mayPreempt is whether a binding may have others evicted.
func mayPreempt(config *model.SchedulerConfig, b *model.Binding) bool {
	return config.BindingsPreempt() && b.Preempts && !b.ClusterScoped && !b.IsBestEffort()
}

// pool is a member cluster as a screen sees it.
type pool struct {
	id         string
	cluster    *model.Cluster // nil: it takes nothing
	claimed    bool           // there are claims
	free, soon model.Vector   // claims aside
	victims    []evictable    // ascending by priority; nil until they are asked for
}

// evictable is what is free once everything up to a priority is gone.
type evictable struct {
	priority int32
	room     model.Vector
}

// lookAtCluster reads a cluster.
func (s *Screen) lookAtCluster(id string) {
	s.pool = pool{id: id, cluster: s.Snap.Cluster(id), claimed: len(s.Snap.ClusterClaims(id)) > 0}
	if c := s.pool.cluster; c != nil && c.Down {
		s.pool.cluster = nil
	}
	if !s.pool.claimed {
		s.pool.free, s.pool.soon = s.Snap.ClusterFreeCapacity(id, model.JobKey{}, 0, s.Now)
	}
}

// room is what the cluster offers to a binding, now and soon.
func (s *Screen) room(b *model.Binding) (free, soon model.Vector) {
	if !s.pool.claimed {
		return s.pool.free, s.pool.soon
	}
	free, soon = s.Snap.ClusterFreeCapacity(s.pool.id, b.Key(), b.Priority, s.Now)
	if !mayPreempt(s.Snap.Config(), b) {
		kept := s.Snap.ClusterLeasedBelow(s.pool.id, b.Priority)
		free.Sub(&kept)
		soon.Sub(&kept)
	}
	return free, soon
}

// mayBind is whether a binding that waits may use a member cluster now: a replica
// of it fits (all of them, where they go together), or those who may be evicted
// there make room for all that are missing.
func (s *Screen) mayBind(eval *model.Evaluation, id string) bool {
	n := s.Needs.ofBinding(eval, s)
	if n == nil {
		return true
	}
	if s.pool.id != id {
		s.lookAtCluster(id)
	}
	b := n.binding
	if s.pool.cluster == nil || !b.IsFeasible(s.pool.cluster) {
		return false
	}
	free, soon := s.room(b)
	if s.mayEvict(n, soon) {
		return true
	}
	if b.FittingReplicas(&free, n.least) < n.least {
		return false
	}
	place := model.ClusterLocation(id)
	if s.left == nil {
		s.left = map[string]*model.Vector{}
	}
	left := s.left[place]
	if left == nil {
		left = &free
		s.left[place] = left
	}
	fit := b.FittingReplicas(left, n.missing)
	if fit < n.least {
		if s.Owed == nil {
			s.Owed = map[string]struct{}{}
		}
		s.Owed[place] = struct{}{}
		return false
	}
	taken := b.TotalAsk(fit)
	left.Sub(&taken)
	return true
}

// mayEvict is whether the binding might claim the cluster: what others leave
// there soon is enough, or what those leave whom it may evict is.
func (s *Screen) mayEvict(n *bindingNeed, soon model.Vector) bool {
	if n.ceiling == math.MinInt64 {
		return false
	}
	if covers(&soon, &n.whole) {
		return true
	}
	if s.pool.victims == nil {
		s.pool.victims = s.evictables()
	}
	at, _ := slices.BinarySearchFunc(s.pool.victims, n.ceiling, func(v evictable, ceiling int64) int {
		if int64(v.priority) <= ceiling {
			return -1
		}
		return 1
	})
	if at == 0 {
		return false
	}
	soon.Add(&s.pool.victims[at-1].room)
	return covers(&soon, &n.whole)
}

// evictables adds up what may be evicted from the cluster; it is not nil.
func (s *Screen) evictables() []evictable {
	list := []evictable{}
	for a, victim := range s.Snap.ClusterWorkload(s.pool.id) {
		if a.Live() && victim != nil && !victim.ClusterScoped {
			list = append(list, evictable{victim.Priority, a.Vec})
		}
	}
	slices.SortFunc(list, func(x, y evictable) int { return cmp.Compare(x.priority, y.priority) })
	for i := 1; i < len(list); i++ {
		list[i].room.Add(&list[i-1].room)
	}
	return list
}
