package apply

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A ClientUpdate is a node's report about an allocation.
type ClientUpdate struct {
	AllocID   string
	Status    model.ClientStatus
	Started   bool  // StartTime is set
	StartTime int64 // Unix nanoseconds at which the allocation started
	// Text is for users; "" retains the previous text. If the allocation is complete, it states why
	// the node stopped it; "" means that it ended by itself.
	Text      string
	EvictedBy string // why the node ended it, such as "pressure"; "" if the node did not
}

// text returns the client text of the allocation after the update.
func (u *ClientUpdate) text(before string) string {
	switch {
	case u.Text != "":
		return u.Text
	case u.EvictedBy != "":
		return "evicted by its node: " + u.EvictedBy
	}
	return before
}

// ClientUpdates writes the reports of nodes. A terminal status is final: later updates
// of the allocation are skipped. Jobs that lose an instance are marked dirty and get at
// most one evaluation each, which are returned, ascending by job. A finite allocation
// that completes leaves nothing to replace, unless its job changed so that it runs again, or it
// was about to move: the other members of a gang may have waited for its replacement, which is no
// longer required. An update that changes nothing writes nothing, and wakes no watch.
func ClientUpdates(t *state.Txn, now int64, updates []ClientUpdate) []*model.Evaluation {
	missing := newFollowUps(model.TriggerAllocStop, "")
	for _, u := range updates {
		old := t.Alloc(u.AllocID)
		if old == nil || old.Client.Terminal() {
			continue
		}
		a := *old
		a.Client = u.Status
		if u.Status == model.ClientComplete && u.Text != "" && a.Desired == model.DesiredRun && t.Meta().Version >= RerunFrom {
			// It was stopped before a restored snapshot required it again: its work is not done.
			a.Client = model.ClientFailed
		}
		if u.Started {
			a.Started, a.StartTime = true, u.StartTime
		}
		a.ClientText = u.text(old.ClientText)
		if a.Client == old.Client && a.Started == old.Started && a.StartTime == old.StartTime &&
			a.ClientText == old.ClientText {
			continue
		}
		a.ModifyTime = now
		if a.Client.Terminal() && a.Desired == model.DesiredRun {
			a.EndTime = now
		}
		t.AllocWriter().Upsert(&a)
		done := a.Client == model.ClientComplete && a.Job.Type.Finite() && !runsAgain(&t.View, &a)
		if a.Client.Terminal() && a.Desired == model.DesiredRun && (!done || wasToMove(&t.View, &a)) {
			missing.addJob(a.Job)
		}
	}
	return missing.write(t, now)
}

// runsAgain reports whether the instance of a completed allocation runs again, because its job
// changed or was stopped and submitted again while it ran.
func runsAgain(v *state.View, a *model.Allocation) bool {
	job := v.Job(a.Job.Key())
	return v.Meta().Version >= RerunFrom && job != nil && !job.Stopped && !a.IsDone(job)
}

// wasToMove reports whether a member of a gang was to be replaced when it ended.
func wasToMove(v *state.View, a *model.Allocation) bool {
	if !a.Job.AllAtOnce {
		return false
	}
	node, job := v.Node(a.NodeID), v.Job(a.Job.Key())
	return node == nil || node.Drain || job != nil && job.Version != a.Job.Version
}

// Stops ends allocations on request, with at most one evaluation for each job, which
// are returned, ascending by job: the scheduler decides about replacements. Allocations
// that are missing or not live are skipped. It also returns the nodes of the stopped
// allocations. It does not wait for the end of the allocations; ClientUpdates records
// that.
func Stops(t *state.Txn, now int64, ids []string, reason string) (evals []*model.Evaluation, nodes []string) {
	missing := newFollowUps(model.TriggerAllocStop, "")
	for _, id := range ids {
		old := t.Alloc(id)
		if old == nil || !old.Live() {
			continue
		}
		a := *old
		a.Desired, a.DesiredReason, a.EndTime, a.ModifyTime = model.DesiredStop, reason, now, now
		t.AllocWriter().Upsert(&a)
		missing.addJob(a.Job)
		nodes = append(nodes, a.NodeID)
	}
	return missing.write(t, now), nodes
}
