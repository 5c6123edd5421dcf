package apply

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// An AssignmentUpdate is a member cluster's report about an assignment.
type AssignmentUpdate struct {
	ID        string
	Client    model.ClientStatus // never ClientLost, which a cluster cannot report
	Ready     int                // ready replicas
	Text      string             // for users
	StartTime int64              // Unix nanoseconds at which it started; 0 if not reported
}

// failureBackoff is how long, in nanoseconds, the evaluation of a binding waits
// after its replicas failed: replicas that failed at once would fail again.
const failureBackoff = int64(10e9)

// AssignmentUpdates writes the reports of member clusters. An assignment that was
// stopping and has ended is deleted, one that completed is done, and one that failed is
// deleted with an evaluation of its binding. Assignments that are missing or done are
// skipped. It returns the evaluations, ascending by binding, and the clusters on which
// capacity became free, each once, in the order of updates. A failed assignment is
// deleted rather than retained, because its binding then lacks the replicas and the
// scheduler may divide them anew.
func AssignmentUpdates(t *state.Txn, now int64, updates []AssignmentUpdate) (evals []*model.Evaluation, clusters []string) {
	failed := newFollowUps(model.TriggerAllocStop, "")
	failed.wait = failureBackoff
	seen := map[string]bool{}
	for _, u := range updates {
		old := t.Assignment(u.ID)
		if old == nil || old.Done {
			continue
		}
		if !u.Client.Terminal() {
			recordProgress(t.AssignmentWriter(), old, u)
			continue
		}
		if !seen[old.ClusterID] {
			seen[old.ClusterID] = true
			clusters = append(clusters, old.ClusterID)
		}
		if old.Live() && u.Client == model.ClientComplete {
			a := *old
			a.Done, a.EndTime, a.Client, a.Ready, a.ClientText = true, now, u.Client, 0, u.Text
			t.AssignmentWriter().Upsert(&a)
			continue
		}
		t.AssignmentWriter().Delete(u.ID)
		if b := t.Binding(old.Binding); b != nil && old.Live() {
			failed.addBinding(b)
		}
	}
	return failed.write(t, now), clusters
}

// recordProgress writes a non-terminal report, if it changes the assignment. StartTime
// is set once: agents that restart may report another.
func recordProgress(assignments state.AssignmentWriter, old *model.Assignment, u AssignmentUpdate) {
	a := *old
	a.Client, a.Ready, a.ClientText = u.Client, u.Ready, u.Text
	if u.StartTime != 0 && old.Client == model.ClientPending {
		a.StartTime = u.StartTime
	}
	if a != *old {
		assignments.Upsert(&a)
	}
}

// AssignmentEnds ends assignments: those that were stopping are deleted, the others
// are done. Assignments that are missing or done are skipped. It returns the
// clusters on which capacity became free, each once, in the order of ids.
func AssignmentEnds(assignments state.AssignmentWriter, now int64, ids ...string) (clusters []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		old := assignments.Assignment(id)
		if old == nil || old.Done {
			continue
		}
		if !seen[old.ClusterID] {
			seen[old.ClusterID] = true
			clusters = append(clusters, old.ClusterID)
		}
		if !old.Live() {
			assignments.Delete(id)
			continue
		}
		a := *old
		a.Done, a.EndTime = true, now
		assignments.Upsert(&a)
	}
	return clusters
}

// AssignmentStops withdraws assignments for another reason than their binding's own
// plan, for instance because their cluster is silent, with at most one evaluation for
// each binding, which are returned, ascending by binding. Assignments that are missing
// or not live are skipped. It also returns the clusters of the withdrawn assignments.
// Unlike deletion, a withdrawal leaves the capacity occupied until the member cluster
// reports the end.
func AssignmentStops(t *state.Txn, now int64, ids []string, reason string) (evals []*model.Evaluation, clusters []string) {
	missing := newFollowUps(model.TriggerAllocStop, "")
	for _, id := range ids {
		old := t.Assignment(id)
		if old == nil || !old.Live() {
			continue
		}
		a := *old
		a.Desired, a.DesiredReason, a.EndTime = model.DesiredStop, reason, now
		t.AssignmentWriter().Upsert(&a)
		clusters = append(clusters, a.ClusterID)
		if b := t.Binding(a.Binding); b != nil {
			missing.addBinding(b)
		}
	}
	return missing.write(t, now), clusters
}

// bindingGroup writes the binding changes of a commit group, after its other parts.
// Withdrawals come first, because the assignments were verified with their capacity.
func bindingGroup(t *state.Txn, now int64, plan *model.Plan, g *model.CommitGroup, lost *followUps) {
	for i := range g.Withdrawals {
		withdraw(t, now, plan, g, &g.Withdrawals[i], lost)
	}
	for _, id := range g.ReleasedClaims {
		if c := t.Claim(id); c != nil && c.Claimant == plan.Job {
			t.ClaimWriter().Delete(id)
		}
	}
	addOutranked(&t.View, plan, g, lost)
	for _, planned := range g.Assignments {
		a := *planned
		releaseClusterClaims(t.ClaimWriter(), a.ClusterID, plan.Job) // the assignment takes their place
		if old := t.Assignment(a.ID); old != nil {
			a.CreateTime, a.StartTime = old.CreateTime, old.StartTime
		} else {
			a.CreateTime, a.StartTime = now, now
		}
		t.AssignmentWriter().Upsert(&a)
	}
}

// withdraw ends or shrinks one assignment. The evaluation that it may derive lets the
// scheduler reconsider a binding that lost replicas, or has too many.
func withdraw(t *state.Txn, now int64, plan *model.Plan, g *model.CommitGroup, w *model.Withdrawal, lost *followUps) {
	old := t.Assignment(w.AssignmentID)
	if old == nil || !old.Live() {
		// It completed meanwhile, so the replicas that replace it may be too many.
		if b := t.Binding(plan.Job); b != nil && old != nil && old.CountsAsPlaced() && w.By == "" && len(g.Assignments) > 0 {
			lost.addBinding(b)
		}
		return
	}
	if w.Remaining > 0 {
		shrink(t.AssignmentWriter(), now, old, w)
		if b := t.Binding(old.Binding); b != nil {
			lost.addBinding(b)
		}
		return
	}
	a := *old
	a.Desired, a.DesiredReason = model.DesiredStop, w.Reason
	if w.By != "" {
		a.Desired, a.DesiredReason = model.DesiredEvict, "preempted by "+w.By
		a.PreemptedBy, a.PolicyVersion = w.By, w.Policy
	}
	a.EndTime = now
	t.AssignmentWriter().Upsert(&a)
	if b := t.Binding(a.Binding); b != nil && a.Binding != plan.Job {
		lost.addBinding(b)
	}
}

// shrink removes replicas from an assignment. They become an assignment of their own,
// which holds its capacity until they have ended. The ID of the part is derived from
// both, so that every server computes the same.
func shrink(assignments state.AssignmentWriter, now int64, old *model.Assignment, w *model.Withdrawal) {
	if w.Remaining >= old.Replicas {
		return
	}
	rest, part := *old, *old
	rest.Replicas, part.Replicas = w.Remaining, old.Replicas-w.Remaining
	for d, all := range old.Vec { // divisible: all replicas are equal
		rest.Vec[d] = all / int64(old.Replicas) * int64(rest.Replicas)
		part.Vec[d] = all - rest.Vec[d]
	}
	rest.Ready = min(rest.Ready, rest.Replicas)
	part.ID, part.CreateIndex, part.Ready = model.PartID(old.ID, w.By), 0, 0
	part.Desired, part.DesiredReason = model.DesiredEvict, "preempted by "+w.By
	part.PreemptedBy, part.PolicyVersion, part.EndTime = w.By, w.Policy, now
	assignments.Upsert(&rest)
	assignments.Upsert(&part)
}

// addOutranked adds the bindings whose claims the plan may ignore because its
// priority is higher: the capacity that they wait for may never become free.
func addOutranked(v *state.View, plan *model.Plan, g *model.CommitGroup, lost *followUps) {
	addClaimants := func(cluster string) {
		for _, c := range v.ClusterClaims(cluster) {
			if b := v.Binding(c.Claimant); b != nil && c.Claimant != plan.Job && c.Priority < plan.Priority {
				lost.addBinding(b)
			}
		}
	}
	for _, a := range g.Assignments {
		addClaimants(a.ClusterID)
	}
	for _, c := range g.Claims {
		addClaimants(c.ClusterID)
	}
}

// releaseClusterClaims deletes the claims of a binding on a cluster. Reading the list
// while deleting is safe, because a list is replaced and never changed.
func releaseClusterClaims(claims state.ClaimWriter, cluster string, claimant model.JobKey) {
	for _, c := range claims.ClusterClaims(cluster) { // each deletion replaces the list
		if c.Claimant == claimant {
			claims.Delete(c.ID)
		}
	}
}
