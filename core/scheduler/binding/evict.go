package binding

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	search "github.com/cede-scheduler/cede/core/preempt/binding"
)

// preemptOn claims capacity for the missing replicas on one of the clusters. If none
// will have enough after all pending stops, it evicts from one of them, or from several
// clusters if there is no such cluster and the policy allows it. Claims of earlier
// evaluations that are still valid are retained, so that repeated evaluations do not
// evict again and again.
func (e *evaluation) preemptOn(clusters []*model.Cluster, missing int) error {
	why := e.wait(missing, missing)
	h := e.heldFor(missing)
	switch {
	case h != nil && (h.valid || e.preempts):
		e.retainClaims(h, why)
		return nil
	case !e.preempts:
		why.NoEviction = e.noEviction()
		return nil
	case len(clusters) == 0 && e.maySpanClusters():
		return e.evictFromSeveral(missing, why)
	case len(clusters) == 0:
		why.NoEviction = reasonOnSeveral + "; set karmada's multiCluster to preempt on several"
		return nil
	}
	stopping, lacking := e.view.splitSoon(clusters, missing)
	if len(stopping) > 0 {
		e.claimAll([]slot{{cluster: e.claimedFirst(stopping)[0], add: missing}}, e.view.stopTime, why)
		return nil
	}
	return e.evict(lacking, missing, why, func(c *model.Cluster) []slot { return []slot{{cluster: c, add: missing}} })
}

// reasonOnSeveral states why nothing is evicted if no single cluster suffices.
const reasonOnSeveral = "the replicas need capacity on several clusters, and preemption frees capacity on one cluster only"

// evict searches victims on one of the clusters. claims returns the slots to claim if
// they are found on a cluster. It returns a *policy.Error if the breaker is open or the
// policy is at fault.
func (e *evaluation) evict(clusters []*model.Cluster, replicas int, why *model.Explanation, claims func(*model.Cluster) []slot) error {
	if open := e.version.Breaker.OpenError(e.Now); open != nil {
		return open
	}
	e.consulted = true
	found, err := search.Find(e.Snapshot, e.request(e.inTieOrder(clusters), replicas))
	if err != nil {
		return err
	}
	if found.Cluster == nil {
		e.result.RecheckAt = found.RecheckAt
		e.countOutcomes(found.Outcomes, why)
		if e.maySpanClusters() {
			return e.evictFromSeveral(replicas, why)
		}
		return nil
	}
	e.evictAndClaim(claims(found.Cluster), &found, found.Victims, why)
	return nil
}

// evictFromSeveral evicts from several clusters together, if the policy allows it
// and no single one suffices. Everything is claimed in one plan, or nothing is
// evicted.
func (e *evaluation) evictFromSeveral(missing int, why *model.Explanation) error {
	l := &e.layout
	// Capacity that is being freed already may suffice; then nothing is evicted.
	offers := l.soon()
	if chosen, ok := l.divide(missing, offers); ok {
		e.claimAll(chosen, e.view.stopTime, why)
		return nil
	}
	if open := e.version.Breaker.OpenError(e.Now); open != nil {
		return open
	}
	e.consulted = true
	enough := func(offers []model.Vector) bool { return l.canDivide(missing, offers) }
	req, domains := e.request(l.feasible, missing), l.domains()
	var found search.SpreadResult
	var err error
	if len(domains) > 1 {
		found, err = search.FindSpreadWithin(e.Snapshot, req, domains, enough)
	} else {
		found, err = search.FindSpread(e.Snapshot, req, enough)
	}
	if err != nil {
		return err
	}
	if len(found.Victims) == 0 {
		if why.Preempted == nil { // else it holds why no single cluster suffices
			e.countOutcomes(found.Result.Outcomes, why)
		}
		if at := found.Result.RecheckAt; at != 0 && (e.result.RecheckAt == 0 || at < e.result.RecheckAt) {
			e.result.RecheckAt = at
		}
		return nil
	}
	for _, v := range found.Victims {
		freed := v.Freed()
		offers[l.indexOf(v.ClusterID)].Add(&freed)
	}
	// FindSpread verified that the division exists.
	chosen, _ := l.divide(missing, offers)
	e.evictAndClaim(chosen, &found.Result, found.Victims, why)
	return nil
}

// evictAndClaim evicts the victims that a search found and claims capacity for slots. A claim must last until
// the slowest victim on its cluster has stopped.
func (e *evaluation) evictAndClaim(slots []slot, found *search.Result, victims []search.Victim, why *model.Explanation) {
	claims := e.claimAll(slots, func(cluster string) int64 {
		wait := e.view.stopTime(cluster)
		for _, v := range victims {
			if v.ClusterID == cluster {
				wait = max(wait, e.view.killTimeout(v.Assignment))
			}
		}
		return wait
	}, why)
	group := &e.changes.group
	for _, v := range victims {
		if id := claims[v.ClusterID]; id != "" {
			group.Withdrawals = append(group.Withdrawals, model.Withdrawal{AssignmentID: v.ID, Remaining: v.Keep, By: id, Policy: found.Version.ID})
		}
	}
	// Each claim that evicts has an explanation of its own, since a record is derived for
	// each. Claims on further clusters, which evict nothing, have none.
	for _, s := range slots {
		if id := claims[s.cluster.ID]; found.Why != nil && slices.ContainsFunc(group.Withdrawals, func(w model.Withdrawal) bool { return w.By == id }) {
			choice := *found.Why
			choice.By = id
			group.Choices = append(group.Choices, &choice)
		}
	}
}

// request returns a search for capacity for replicas on clusters.
func (e *evaluation) request(clusters []*model.Cluster, replicas int) *search.Request {
	return &search.Request{
		Binding: e.binding, Replicas: replicas, Now: e.Now, Delta: e.Snapshot.Config().PriorityDelta,
		Waiting: max(0, e.Now-e.binding.SubmitTime), Attempts: e.Eval.Attempts,
		Policy: e.version, Default: e.Policies.Default(), Clusters: clusters,
		TieOrder: e.TieOrder, OnCall: e.OnCall,
	}
}

// maySpanClusters reports whether the policy may evict from several clusters together.
func (e *evaluation) maySpanClusters() bool {
	return !e.binding.Duplicated && e.version.Info().MultiCluster
}

// countOutcomes adds the outcomes of a search to an explanation. Each cluster counts
// once.
func (e *evaluation) countOutcomes(outcomes []preempt.Outcome, why *model.Explanation) {
	ceiling := search.Ceiling(e.binding.Priority, e.version, e.Snapshot.Config().PriorityDelta)
	for _, o := range outcomes {
		model.CountReason(&why.Preempted, outcomeReason(o, ceiling), 1)
	}
}
