package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// What a group does to bindings is checked by itself: a plan of a binding has
// one group, so nothing of it has to be taken back for the sake of another.

// aboutBindings is whether a group is checked here.
func aboutBindings(g *model.CommitGroup) bool {
	return g.HasBindingChanges() || slices.ContainsFunc(g.Claims, func(c *model.Claim) bool { return c != nil && c.ClusterID != "" })
}

// bindingFault names the first fault of a group about bindings, or "".
func bindingFault(plan *model.Plan, g *model.CommitGroup) string {
	if len(plan.Groups) > 1 {
		return "a plan of a binding has one group"
	}
	if len(g.Placements)+len(g.Updates)+len(g.Stops)+len(g.Evictions) > 0 {
		return "it is about allocations and about bindings"
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

// bindings checks a group about bindings against the state.
func (s *Scratch) bindings(g *model.CommitGroup) refusal {
	b := s.snap.Binding(s.plan.Job)
	if len(g.Assignments)+len(g.Claims) > 0 {
		switch {
		case b == nil:
			return refusal{CauseJob, "", "the binding is gone", false}
		case b.Stopped:
			return refusal{CauseJob, "", "the binding is stopped", false}
		case b.Priority != s.plan.Priority:
			return refusal{CauseJob, "", fmt.Sprintf("the binding has priority %d, the plan %d", b.Priority, s.plan.Priority), false}
		}
	}
	w := withdrawals{gone: map[string]bool{}, keep: map[string]int{}, freed: map[string]model.Vector{}}
	for i := range g.Withdrawals {
		if r := s.withdraw(b, g, &g.Withdrawals[i], &w); r.reason != "" {
			return r
		}
	}
	for i := range g.Withdrawals {
		if r := s.keepsMinimum(&g.Withdrawals[i], &w); r.reason != "" {
			return r
		}
	}
	if r := s.assignAll(b, g, &w); r.reason != "" {
		return r
	}
	for _, c := range g.Claims {
		if r := s.claimCluster(b, c, &w); r.reason != "" {
			return r
		}
	}
	return refusal{}
}

// withdrawals is what a group ends.
type withdrawals struct {
	gone  map[string]bool         // assignments
	keep  map[string]int          // by victim that is shrunk: the replicas that stay
	freed map[string]model.Vector // by claim: what its victims will free
}

func (s *Scratch) withdraw(b *model.Binding, g *model.CommitGroup, w *model.Withdrawal, all *withdrawals) refusal {
	a := s.snap.Assignment(w.AssignmentID)
	if w.By == "" {
		if w.Remaining != 0 {
			return malformed("it keeps %d replicas of assignment %q, for nobody", w.Remaining, w.AssignmentID)
		}
		if a != nil && a.Binding != s.plan.Job {
			return malformed("it withdraws assignment %q of %s", a.ID, a.Binding)
		}
		if a == nil || !a.Done { // its replicas count for good once they have done their work
			all.gone[w.AssignmentID] = true
		}
		return refusal{}
	}
	at := slices.IndexFunc(g.Claims, func(c *model.Claim) bool { return c.ID == w.By })
	if at < 0 {
		return refusal{cause: CauseEviction, reason: fmt.Sprintf("no eviction without a claim: %q makes room for %q", w.AssignmentID, w.By)}
	}
	if a == nil || !a.Live() || all.gone[a.ID] {
		return refusal{} // what it held is free, or will be
	}
	if a.ClusterID != g.Claims[at].ClusterID {
		return malformed("assignment %q is not on the cluster of claim %q", a.ID, w.By)
	}
	if why := s.sparesBinding(b, a); why != "" {
		return notEvicted(a, why)
	}
	if w.Remaining < 0 || w.Remaining >= a.Replicas {
		return notEvicted(a, fmt.Sprintf("%d of its %d replicas were to stay", w.Remaining, a.Replicas))
	}
	if w.Remaining > 0 {
		all.keep[a.ID] = w.Remaining
	}
	all.gone[a.ID] = true
	freed := all.freed[w.By]
	freed.Add(&a.Vec)
	for d, each := range a.Vec {
		freed[d] -= each / int64(a.Replicas) * int64(w.Remaining)
	}
	all.freed[w.By] = freed
	return refusal{}
}

// notEvicted refuses a victim.
func notEvicted(a *model.Assignment, why string) refusal {
	return refusal{
		cause: CauseVictim, nodeID: model.ClusterLocation(a.ClusterID),
		reason: fmt.Sprintf("assignment %q may not be evicted: %s", a.ID, why),
	}
}

// keepsMinimum checks what an assignment is shrunk to by what its binding has then,
// with all that the group takes of it gone.
func (s *Scratch) keepsMinimum(w *model.Withdrawal, all *withdrawals) refusal {
	stay, shrunk := all.keep[w.AssignmentID]
	if !shrunk {
		return refusal{}
	}
	a := s.snap.Assignment(w.AssignmentID)
	victim := s.snap.Binding(a.Binding)
	if !victim.Duplicated {
		stay = s.staying(a.Binding, all)
	}
	if victim.MinReplicas == 0 || stay < victim.MinReplicas {
		return notEvicted(a, fmt.Sprintf("%d replicas would stay, and its minReplicas is %d", stay, victim.MinReplicas))
	}
	return refusal{}
}

// staying is how many replicas of a binding stay on all clusters.
func (s *Scratch) staying(binding model.JobKey, all *withdrawals) (n int) {
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

// sparesBinding is why an assignment may be nobody's victim here; "" when it may.
func (s *Scratch) sparesBinding(b *model.Binding, a *model.Assignment) string {
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
		return "the binding that asks never preempts"
	}
	return ""
}

// assignAll checks that what is assigned has room, and is no more than the
// binding wants.
func (s *Scratch) assignAll(b *model.Binding, g *model.CommitGroup, w *withdrawals) refusal {
	if len(g.Assignments) == 0 {
		return refusal{}
	}
	have := map[string]int{} // replicas by cluster
	for _, a := range s.snap.BindingAssignments(s.plan.Job) {
		if a.CountsAsPlaced() && !w.gone[a.ID] {
			have[a.ClusterID] += a.Replicas
		}
	}
	for _, a := range g.Assignments {
		if r := s.assign(b, a, have); r.reason != "" {
			return r
		}
	}
	total := 0
	for cluster, replicas := range have {
		total += replicas
		if b.Duplicated && replicas > b.Replicas {
			return refusal{CausePlaced, model.ClusterLocation(cluster), "the replicas are there already", false}
		}
	}
	if !b.Duplicated && total > b.Replicas {
		return refusal{CausePlaced, "", fmt.Sprintf("the binding would have %d replicas of %d", total, b.Replicas), false}
	}
	return refusal{}
}

func (s *Scratch) assign(b *model.Binding, a *model.Assignment, have map[string]int) refusal {
	place := model.ClusterLocation(a.ClusterID)
	if why := s.refuses(b, a.ClusterID); why != "" {
		return refusal{CauseNode, place, why, false}
	}
	if a.Vec != b.TotalAsk(a.Replicas) {
		return refusal{CauseJob, place, fmt.Sprintf("assignment %q holds what another version of the binding asks for", a.ID), false}
	}
	more := a.Vec
	if old := s.snap.Assignment(a.ID); old != nil {
		if old.Binding != a.Binding || old.ClusterID != a.ClusterID {
			return malformed("assignment %q is another one", a.ID)
		}
		if !old.Live() {
			return refusal{CausePlaced, place, fmt.Sprintf("assignment %q has ended", a.ID), false}
		}
		more.Sub(&old.Vec)
		have[a.ClusterID] -= old.Replicas
	}
	have[a.ClusterID] += a.Replicas
	free, _ := s.snap.ClusterFreeCapacity(a.ClusterID, s.plan.Job, b.Priority, s.now)
	return s.lacks(a.ClusterID, &free, &more)
}

func (s *Scratch) claimCluster(b *model.Binding, c *model.Claim, w *withdrawals) refusal {
	if c.Priority > s.plan.Priority {
		return malformed("claim %q has priority %d, the plan %d", c.ID, c.Priority, s.plan.Priority)
	}
	if other := s.snap.Claim(c.ID); other != nil && (other.Claimant != c.Claimant || other.ClusterID != c.ClusterID) {
		return malformed("claim %q belongs to %s", c.ID, other.Claimant)
	}
	if why := s.refuses(b, c.ClusterID); why != "" {
		return refusal{CauseNode, model.ClusterLocation(c.ClusterID), why, false}
	}
	_, soon := s.snap.ClusterFreeCapacity(c.ClusterID, s.plan.Job, b.Priority, s.now)
	freed := w.freed[c.ID]
	soon.Add(&freed)
	return s.lacks(c.ClusterID, &soon, &c.Vec)
}

// refuses is why a cluster does not take the binding; "" when it does.
func (s *Scratch) refuses(b *model.Binding, id string) string {
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

func (s *Scratch) lacks(cluster string, free, want *model.Vector) refusal {
	for d := range s.snap.Dims().Len() {
		if want[d] > 0 && want[d] > free[d] {
			return refusal{
				CauseResource, model.ClusterLocation(cluster),
				fmt.Sprintf("cluster %s lacks %d of %s", cluster, want[d]-max(0, free[d]), s.snap.Dims().Name(d)), false,
			}
		}
	}
	return refusal{}
}
