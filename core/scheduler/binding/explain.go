package binding

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// explain returns why no cluster takes so many replicas. on holds the replicas by
// cluster, and assigns reports whether the plan assigns replicas to a cluster. The
// first reason of a cluster counts, in the order in which an operator can act:
// constraints, status, capacity, spread.
func explain(v *view, on map[string]int, replicas int, assigns func(cluster string) bool) *model.Explanation {
	why := &model.Explanation{Of: "clusters"}
	b := v.binding
	need := b.TotalAsk(replicas)
	for c := range v.snap.Clusters() {
		why.Nodes++
		reason := b.InfeasibleReason(c)
		switch {
		case reason != "":
			why.CountFiltered(reason)
			continue
		case c.Down:
			model.CountReason(&why.NotReady, "down", 1)
			continue
		}
		free, _ := v.capacity(c)
		switch d := firstLacking(&free, &need); {
		case d >= 0:
			why.CountExhausted(v.snap.Dims().Name(d))
		case on[c.ID] == 0 && b.SpreadText() != "" && !assigns(c.ID):
			why.CountFiltered("spread constraint: " + b.SpreadText())
		}
	}
	return why
}

// outcomeReason returns why a search found no victims on a cluster. ceiling is the
// highest priority that may be evicted. The words are those that jobs use for nodes.
func outcomeReason(o preempt.Outcome, ceiling int64) string {
	switch o {
	case preempt.NoCandidates:
		return proposal.TooHighReason(ceiling)
	case preempt.Insufficient:
		return proposal.InsufficientReason
	}
	return proposal.DeclinedReason
}

// noEviction returns why the evaluation may not evict.
func (e *evaluation) noEviction() string {
	switch {
	case e.result.Fault != nil:
		return proposal.FaultReason
	case e.binding.ClusterScoped:
		return "the binding is cluster-scoped"
	case !e.binding.Preempts:
		return "the binding's preemptionPolicy is Never"
	case e.binding.IsBestEffort():
		return "the binding requests no resources"
	}
	if !e.Snapshot.Config().Preemption[model.JobBinding] {
		return "preemption is off for bindings"
	}
	return "the feature gates PriorityBasedScheduling and PriorityBasedPreemptiveScheduling are not both on"
}

// Recount returns an explanation with the clusters counted as they are in snap. A
// binding is evaluated again only if there may be capacity for it. Clusters that
// joined, failed or filled up in between do not trigger that, and the counts would
// become stale. Reasons that concern eviction remain those of the last evaluation,
// for at most as many clusters as lack something now.
//
// If nothing keeps the binding from being assigned any more, why is returned as it
// is: the binding is about to be evaluated.
func Recount(snap *state.Snapshot, b *model.Binding, why *model.Explanation, now int64) *model.Explanation {
	v := &view{snap: snap, binding: b, now: now}
	on, missing := map[string]int{}, b.Replicas
	for _, a := range snap.BindingAssignments(b.Key()) {
		if !a.CountsAsPlaced() {
			continue
		}
		on[a.ClusterID] += a.Replicas
		if !b.Duplicated {
			missing -= a.Replicas
		} else if a.Replicas < b.Replicas {
			return why // it waits to return to full size on a cluster that it is on
		}
	}
	if missing <= 0 {
		return why
	}
	for c := range snap.Clusters() {
		v.capacity(c) // sets hasLeases
	}
	v.revoke(MayPreempt(snap.Config(), b))
	fresh := explain(v, on, missing, func(string) bool { return false })
	if fresh.Nodes > 0 && len(fresh.Exhausted)+len(fresh.NotReady)+len(fresh.Filtered) == 0 {
		return why
	}
	counted := *why
	counted.Nodes, counted.Exhausted, counted.NotReady, counted.Filtered = fresh.Nodes, fresh.Exhausted, fresh.NotReady, fresh.Filtered
	counted.Preempted = limitCounts(why.Preempted, fresh.Exhausted)
	return &counted
}

// limitCounts returns counts with none above the sum of others. A cluster that lacks
// nothing any more has no reason to be in the counts.
func limitCounts(counts, others map[string]int) map[string]int {
	most := 0
	for _, n := range others {
		most += n
	}
	var limited map[string]int
	for reason, n := range counts {
		model.CountReason(&limited, reason, min(n, most))
	}
	return limited
}
