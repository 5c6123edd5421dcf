package state

import "github.com/cede-scheduler/cede/core/model"

// AssignmentUpdate is what a member cluster reports of an assignment.
type AssignmentUpdate struct {
	ID        string
	Client    model.ClientStatus // ClientLost is not for a cluster to say
	Ready     int                // replicas that work
	Text      string             // for people
	StartTime int64              // Unix nanoseconds at which it started to work; 0: it has not said
}

// retryFailed is how long a binding waits for another place after its replicas
// failed, in nanoseconds: what failed at once would fail again at once.
const retryFailed = int64(10e9)

// ApplyAssignmentUpdates writes what member clusters report. What was told to
// stop and has ended is forgotten, what has done its work is done, and what has
// failed is forgotten with an evaluation of its binding. Ids that are not there, or
// ended before, are skipped. It returns the evaluations, ascending by binding, and
// the clusters on which there is room by it, each once, in the order of updates.
func (t *Txn) ApplyAssignmentUpdates(now int64, updates []AssignmentUpdate) (evals []*model.Evaluation, clusters []string) {
	failed := newFollowUps(model.TriggerAllocStop, "")
	failed.wait = retryFailed
	seen := map[string]bool{}
	for _, u := range updates {
		old := t.Assignment(u.ID)
		if old == nil || old.Done {
			continue
		}
		if !u.Client.Terminal() {
			t.noteAssignment(old, u)
			continue
		}
		if !seen[old.ClusterID] {
			seen[old.ClusterID] = true
			clusters = append(clusters, old.ClusterID)
		}
		if old.Live() && u.Client == model.ClientComplete {
			a := *old
			a.Done, a.EndTime, a.Client, a.Ready, a.ClientText = true, now, u.Client, 0, u.Text
			t.UpsertAssignment(&a)
			continue
		}
		t.DeleteAssignment(u.ID)
		if b := t.Binding(old.Binding); b != nil && old.Live() {
			failed.addBinding(b)
		}
	}
	return failed.write(t, now), clusters
}

// noteAssignment writes how an assignment does, if that is news.
func (t *Txn) noteAssignment(old *model.Assignment, u AssignmentUpdate) {
	a := *old
	a.Client, a.Ready, a.ClientText = u.Client, u.Ready, u.Text
	if u.StartTime != 0 && old.Client == model.ClientPending {
		a.StartTime = u.StartTime
	}
	if a != *old {
		t.UpsertAssignment(&a)
	}
}

// ApplyAssignmentStops withdraws assignments that somebody else than their
// binding wants gone, such as those on a cluster that is silent, with at most one
// evaluation for each binding, which are returned, ascending by binding. What is no
// longer wanted already, and ids that are not there, are skipped. It also returns
// the clusters of what it withdrew.
func (t *Txn) ApplyAssignmentStops(now int64, ids []string, reason string) (evals []*model.Evaluation, clusters []string) {
	missing := newFollowUps(model.TriggerAllocStop, "")
	for _, id := range ids {
		old := t.Assignment(id)
		if old == nil || !old.Live() {
			continue
		}
		a := *old
		a.Desired, a.DesiredReason, a.EndTime = model.DesiredStop, reason, now
		t.UpsertAssignment(&a)
		clusters = append(clusters, a.ClusterID)
		if b := t.Binding(a.Binding); b != nil {
			missing.addBinding(b)
		}
	}
	return missing.write(t, now), clusters
}
