package scheduler

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Recounted is why a binding waits, with the clusters counted as they are in snap. A
// binding is looked at again when there may be room for it: that other clusters have
// come, gone down or filled up meanwhile is no reason for that, and the counts of
// then would stay. What is said of eviction is from when it was looked at, of no more
// clusters than lack something now.
//
// why is returned as it is where nothing keeps the binding from its place any more:
// it is about to be looked at.
func Recounted(snap *state.Snapshot, b *model.Binding, why *model.Explanation, now int64) *model.Explanation {
	r := &bindingRun{snap: snap, binding: b, now: now, on: map[string]int{}, preempts: mayPreempt(snap.Config(), b)}
	missing := b.Replicas
	for _, a := range snap.BindingAssignments(b.Key()) {
		if !a.CountsAsPlaced() {
			continue
		}
		r.on[a.ClusterID] += a.Replicas
		if !b.Duplicated {
			missing -= a.Replicas
		} else if a.Replicas < b.Replicas {
			return why // it waits to grow where it is
		}
	}
	if missing <= 0 {
		return why
	}
	for c := range snap.Clusters() {
		r.room(c) // which tells whether there is something to revoke
	}
	r.revoke()
	fresh := r.explain(missing)
	if fresh.Nodes > 0 && len(fresh.Exhausted)+len(fresh.NotReady)+len(fresh.Filtered) == 0 {
		return why
	}
	counted := *why
	counted.Nodes, counted.Exhausted, counted.NotReady, counted.Filtered = fresh.Nodes, fresh.Exhausted, fresh.NotReady, fresh.Filtered
	counted.Preempted = capped(why.Preempted, fresh.Exhausted)
	return &counted
}

// capped is counts of which none exceeds the sum of others.
func capped(counts, by map[string]int) map[string]int {
	most := 0
	for _, n := range by {
		most += n
	}
	var fewer map[string]int
	for what, n := range counts {
		model.CountReason(&fewer, what, min(n, most))
	}
	return fewer
}
