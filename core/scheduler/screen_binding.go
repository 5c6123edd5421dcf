package scheduler

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
)

// mayBind is whether a binding that waits may use a member cluster now: a replica
// of it fits (all of them, where they are duplicated), or somebody is there whom
// it might evict.
func (s *Screen) mayBind(eval *model.Evaluation, id string) bool {
	b, cluster := s.Snap.Binding(eval.JobKey()), s.Snap.Cluster(id)
	if b == nil || b.Stopped {
		return true // whatever it waits for, it waits no longer
	}
	if cluster == nil || cluster.Down || !b.Admits(cluster) {
		return false
	}
	least := 1
	if b.Duplicated {
		least = b.Replicas
	}
	free, soon := s.Snap.ClusterRoom(id, b.Key(), b.Priority, s.Now)
	if s.mayEvict(b, id, b.Fits(&soon, least) == least) {
		return true
	}
	if b.Fits(&free, least) < least {
		return false
	}
	place := model.ClusterPlace(id)
	if s.left == nil {
		s.left = map[string]*model.Vector{}
	}
	left := s.left[place]
	if left == nil {
		left = &free
		s.left[place] = left
	}
	n := b.Fits(left, max(least, eval.Queued[b.ID]))
	if n < least {
		if s.Owed == nil {
			s.Owed = map[string]struct{}{}
		}
		s.Owed[place] = struct{}{}
		return false
	}
	taken := b.Needs(n)
	left.Sub(&taken)
	return true
}

// mayEvict is whether the binding might evict what has the lowest priority on the
// cluster, or claim what others are leaving there: soon is whether that is enough.
func (s *Screen) mayEvict(b *model.Binding, id string, soon bool) bool {
	config := s.Snap.Config()
	if !b.Preempts || b.ClusterScoped || !config.Preemption[model.JobBinding] {
		return false
	}
	if soon {
		return true
	}
	version, err := s.Policies.Pick("", config.Policy)
	if err != nil {
		return true
	}
	lowest, known := s.lowest[id]
	if !known {
		lowest = math.MaxInt32
		for _, a := range s.Snap.ClusterAssignments(id) {
			if victim := s.Snap.Binding(a.Binding); a.Live() && victim != nil && !victim.ClusterScoped {
				lowest = min(lowest, victim.Priority)
			}
		}
		if s.lowest == nil {
			s.lowest = map[string]int32{}
		}
		s.lowest[id] = lowest
	}
	return int64(lowest) <= preempt.BindingCeiling(b.Priority, version, config.PriorityDelta)
}
