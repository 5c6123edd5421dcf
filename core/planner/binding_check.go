package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// changesBindings reports whether a group is checked by bindingCheck.
func changesBindings(g *model.CommitGroup) bool {
	return g.HasBindingChanges() || slices.ContainsFunc(g.Claims, func(c *model.Claim) bool { return c != nil && c.ClusterID != "" })
}

// validateBindings returns the first fault of a group about bindings, or "". With a
// single group, bindingCheck needs no rollback, and the separation from allocations
// keeps the two kinds of capacity apart.
func validateBindings(plan *model.Plan, g *model.CommitGroup) string {
	if len(plan.Groups) > 1 {
		return "a plan of a binding has one group"
	}
	if len(g.Placements)+len(g.Updates)+len(g.Stops)+len(g.Evictions) > 0 {
		return "the group contains both allocations and bindings"
	}
	for _, a := range g.Assignments {
		switch {
		case a == nil:
			return "an assignment is missing"
		case a.ID == "" || a.ClusterID == "":
			return "an assignment has no id or names no cluster"
		case a.Binding != plan.Job:
			return fmt.Sprintf("assignment %q is of %s, the plan of %s", a.ID, a.Binding, plan.Job)
		case a.Replicas <= 0:
			return fmt.Sprintf("assignment %q is of %d replicas", a.ID, a.Replicas)
		case !a.Live():
			return fmt.Sprintf("assignment %q is not to run", a.ID)
		}
	}
	for i := range g.Withdrawals {
		if g.Withdrawals[i].AssignmentID == "" {
			return "a withdrawal names no assignment"
		}
	}
	for _, c := range g.Claims {
		if c.NodeID != "" || len(c.Ports)+len(c.Devices) > 0 {
			return fmt.Sprintf("claim %q is on a cluster and names a node, ports or devices", c.ID)
		}
	}
	return ""
}

// A bindingCheck verifies the group of a binding's plan against a state. The plan has
// one group, so nothing is ever rolled back.
type bindingCheck struct {
	snap *state.Snapshot
	plan *model.Plan
	now  int64 // Unix nanoseconds at which claims are read
}

// check checks the group and returns why it does not hold. Withdrawals are read first,
// because the other parts count the capacity that they free. minReplicas is checked
// after all of them: one group may shrink a victim on several clusters.
func (s *bindingCheck) check(g *model.CommitGroup) rejection {
	b := s.snap.Binding(s.plan.Job)
	if len(g.Assignments)+len(g.Claims) > 0 {
		switch {
		case b == nil:
			return rejection{CauseJob, "", "the binding is gone", false}
		case b.Stopped:
			return rejection{CauseJob, "", "the binding is stopped", false}
		case b.Priority != s.plan.Priority:
			return rejection{CauseJob, "", fmt.Sprintf("the binding has priority %d, the plan %d", b.Priority, s.plan.Priority), false}
		}
	}
	w := withdrawals{gone: map[string]bool{}, keep: map[string]int{}, freed: map[string]model.Vector{}, used: map[string]model.Vector{}}
	for i := range g.Withdrawals {
		if r := s.checkWithdrawal(b, g, &g.Withdrawals[i], &w); r.reason != "" {
			return r
		}
	}
	for i := range g.Withdrawals {
		if r := s.checkMinReplicas(&g.Withdrawals[i], &w); r.reason != "" {
			return r
		}
	}
	if r := s.checkAssignments(b, g, &w); r.reason != "" {
		return r
	}
	for _, c := range g.Claims {
		if r := s.checkClusterClaim(b, c, &w); r.reason != "" {
			return r
		}
	}
	return rejection{}
}

// withdrawals collects the removals of a group. It is complete before the first
// assignment or claim is checked.
type withdrawals struct {
	gone  map[string]bool         // assignments
	keep  map[string]int          // by shrunk victim: the replicas that remain
	freed map[string]model.Vector // by claim: the capacity that its victims will free
	// used holds, by cluster, the capacity that the assignments and claims of the group
	// take that were checked before. The group is committed as a whole, so each must fit
	// beside the others, not only by itself.
	used map[string]model.Vector
}

// use subtracts the capacity that the group already uses on a cluster from free, and adds
// more to it. What an assignment gives up is not added: it is occupied until it has
// stopped.
func (w *withdrawals) use(cluster string, free, more *model.Vector) {
	used := w.used[cluster]
	free.Sub(&used)
	for d, amount := range more {
		used[d] += max(0, amount)
	}
	w.used[cluster] = used
}

// checkWithdrawal checks one removal and adds it to all. Without By, the binding
// withdraws an assignment of its own; with it, a claim of the group evicts or shrinks a
// victim.
func (s *bindingCheck) checkWithdrawal(b *model.Binding, g *model.CommitGroup, w *model.Withdrawal, all *withdrawals) rejection {
	a := s.snap.Assignment(w.AssignmentID)
	if w.By == "" {
		if w.Remaining != 0 {
			return malformed("retains %d replicas of assignment %q without a claim", w.Remaining, w.AssignmentID)
		}
		if a != nil && a.Binding != s.plan.Job {
			return malformed("withdraws assignment %q of %s", a.ID, a.Binding)
		}
		if a == nil || !a.Done { // completed replicas remain counted
			all.gone[w.AssignmentID] = true
		}
		return rejection{}
	}
	at := slices.IndexFunc(g.Claims, func(c *model.Claim) bool { return c.ID == w.By })
	if at < 0 {
		return rejection{cause: CauseEviction, reason: fmt.Sprintf("eviction of %q serves no claim of its group: %q", w.AssignmentID, w.By)}
	}
	if a == nil || !a.Live() || all.gone[a.ID] {
		return rejection{} // its capacity is free, or will be
	}
	if a.ClusterID != g.Claims[at].ClusterID {
		return malformed("assignment %q is not on the cluster of claim %q", a.ID, w.By)
	}
	if why := s.protectedReason(b, a); why != "" {
		return rejectVictim(a, why)
	}
	if w.Remaining < 0 || w.Remaining >= a.Replicas {
		return rejectVictim(a, fmt.Sprintf("%d of its %d replicas were to stay", w.Remaining, a.Replicas))
	}
	if w.Remaining > 0 {
		all.keep[a.ID] = w.Remaining
	}
	all.gone[a.ID] = true
	// Vec is the ask of one replica times Replicas (checkAssignment requires it), so
	// the division is exact.
	freed := all.freed[w.By]
	freed.Add(&a.Vec)
	for d, each := range a.Vec {
		freed[d] -= each / int64(a.Replicas) * int64(w.Remaining)
	}
	all.freed[w.By] = freed
	return rejection{}
}

// rejectVictim returns the rejection of a victim.
func rejectVictim(a *model.Assignment, why string) rejection {
	return rejection{
		cause: CauseVictim, nodeID: model.ClusterLocation(a.ClusterID),
		reason: fmt.Sprintf("assignment %q may not be evicted: %s", a.ID, why),
	}
}

// checkMinReplicas checks that the replicas of a shrunk binding that remain, after
// all removals of the group, are at least its minReplicas.
func (s *bindingCheck) checkMinReplicas(w *model.Withdrawal, all *withdrawals) rejection {
	stay, shrunk := all.keep[w.AssignmentID]
	if !shrunk {
		return rejection{}
	}
	a := s.snap.Assignment(w.AssignmentID)
	victim := s.snap.Binding(a.Binding)
	// A duplicated binding runs all its replicas on each cluster, so its minimum
	// applies to each cluster alone.
	if !victim.Duplicated {
		stay = s.remainingReplicas(a.Binding, all)
	}
	if victim.MinReplicas == 0 || stay < victim.MinReplicas {
		return rejectVictim(a, fmt.Sprintf("%d replicas would stay, and its minReplicas is %d", stay, victim.MinReplicas))
	}
	return rejection{}
}

// remainingReplicas returns the number of replicas of a binding that remain on all
// clusters.
func (s *bindingCheck) remainingReplicas(binding model.JobKey, all *withdrawals) (n int) {
	for _, x := range s.snap.BindingAssignments(binding) {
		switch {
		case !x.Live():
		case all.gone[x.ID]:
			n += all.keep[x.ID]
		default:
			n += x.Replicas
		}
	}
	return n
}

// protectedReason returns why an assignment may not be a victim of this plan, or
// "".
func (s *bindingCheck) protectedReason(b *model.Binding, a *model.Assignment) string {
	victim := s.snap.Binding(a.Binding)
	switch {
	case a.Binding == s.plan.Job:
		return "it is of the same binding"
	case victim == nil:
		return "its binding is gone"
	case victim.ClusterScoped:
		return "its binding is cluster-scoped"
	case victim.Priority >= b.Priority:
		return fmt.Sprintf("its priority %d is not below %d", victim.Priority, b.Priority)
	case !b.Preempts || b.ClusterScoped:
		return "the preempting binding never preempts"
	}
	return ""
}

// checkAssignments checks that the assignments fit, and are no more than the binding
// requires. Completed replicas count as placed: a binding that ran to its end on one
// cluster does not start again on another.
func (s *bindingCheck) checkAssignments(b *model.Binding, g *model.CommitGroup, w *withdrawals) rejection {
	if len(g.Assignments) == 0 {
		return rejection{}
	}
	have := map[string]int{} // replicas by cluster
	for _, a := range s.snap.BindingAssignments(s.plan.Job) {
		if a.CountsAsPlaced() && !w.gone[a.ID] {
			have[a.ClusterID] += a.Replicas
		}
	}
	seen := map[string]bool{}
	for _, a := range g.Assignments {
		if seen[a.ID] {
			return malformed("assignment %q is listed twice", a.ID)
		}
		seen[a.ID] = true
		if r := s.checkAssignment(b, a, have, w); r.reason != "" {
			return r
		}
	}
	total := 0
	for cluster, replicas := range have {
		total += replicas
		if b.Duplicated && replicas > b.Replicas {
			return rejection{CausePlaced, model.ClusterLocation(cluster), "the replicas are there already", false}
		}
	}
	if !b.Duplicated && total > b.Replicas {
		return rejection{CausePlaced, "", fmt.Sprintf("the binding would have %d replicas of %d", total, b.Replicas), false}
	}
	return rejection{}
}

// checkAssignment checks one assignment, which may replace an earlier version of
// itself: only the difference must fit then. It adds the replicas to have, by cluster.
func (s *bindingCheck) checkAssignment(b *model.Binding, a *model.Assignment, have map[string]int, w *withdrawals) rejection {
	place := model.ClusterLocation(a.ClusterID)
	if why := s.ineligibleReason(b, a.ClusterID); why != "" {
		return rejection{CauseNode, place, why, false}
	}
	// The binding was changed after the plan was made.
	if a.Vec != b.TotalAsk(a.Replicas) {
		return rejection{CauseJob, place, fmt.Sprintf("assignment %q holds the request of another version of the binding", a.ID), false}
	}
	more := a.Vec
	if old := s.snap.Assignment(a.ID); old != nil {
		if old.Binding != a.Binding || old.ClusterID != a.ClusterID {
			return malformed("assignment %q has another binding or cluster", a.ID)
		}
		if !old.Live() {
			return rejection{CausePlaced, place, fmt.Sprintf("assignment %q has ended", a.ID), false}
		}
		more.Sub(&old.Vec)
		have[a.ClusterID] -= old.Replicas
	}
	have[a.ClusterID] += a.Replicas
	free, _ := s.snap.ClusterFreeCapacity(a.ClusterID, s.plan.Job, b.Priority, s.now)
	w.use(a.ClusterID, &free, &more)
	return s.checkClusterShortage(a.ClusterID, &free, &more)
}

// checkClusterClaim checks a claim against the capacity that becomes free once stopping
// assignments have ended, together with the capacity that its own victims free. The
// victims of another claim do not count: their capacity is promised to that claim.
func (s *bindingCheck) checkClusterClaim(b *model.Binding, c *model.Claim, w *withdrawals) rejection {
	if c.Priority > s.plan.Priority {
		return malformed("claim %q has priority %d, the plan %d", c.ID, c.Priority, s.plan.Priority)
	}
	if other := s.snap.Claim(c.ID); other != nil && (other.Claimant != c.Claimant || other.ClusterID != c.ClusterID) {
		return malformed("claim %q belongs to %s", c.ID, other.Claimant)
	}
	if why := s.ineligibleReason(b, c.ClusterID); why != "" {
		return rejection{CauseNode, model.ClusterLocation(c.ClusterID), why, false}
	}
	_, soon := s.snap.ClusterFreeCapacity(c.ClusterID, s.plan.Job, b.Priority, s.now)
	freed := w.freed[c.ID]
	soon.Add(&freed)
	w.use(c.ClusterID, &soon, &c.Vec)
	return s.checkClusterShortage(c.ClusterID, &soon, &c.Vec)
}

// ineligibleReason returns why a cluster does not accept the binding, or "".
func (s *bindingCheck) ineligibleReason(b *model.Binding, id string) string {
	cluster := s.snap.Cluster(id)
	switch {
	case cluster == nil:
		return "the cluster is gone"
	case cluster.Down:
		return "the cluster is down"
	case !b.IsFeasible(cluster):
		return "the cluster is excluded by " + b.InfeasibleReason(cluster)
	}
	return ""
}

// checkClusterShortage returns the rejection for the first dimension that is short. free
// may be negative if the cluster reported less capacity than its assignments hold.
func (s *bindingCheck) checkClusterShortage(cluster string, free, want *model.Vector) rejection {
	for d := range s.snap.Dims().Len() {
		if want[d] > 0 && want[d] > free[d] {
			return rejection{
				CauseResource, model.ClusterLocation(cluster),
				fmt.Sprintf("cluster %s lacks %d of %s", cluster, want[d]-max(0, free[d]), s.snap.Dims().Name(d)), false,
			}
		}
	}
	return rejection{}
}
