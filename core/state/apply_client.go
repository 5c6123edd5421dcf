package state

import "github.com/cede-scheduler/cede/core/model"

// ClientUpdate is what a node reports of an allocation.
type ClientUpdate struct {
	AllocID   string
	Status    model.ClientStatus
	Started   bool   // whether StartTime says something
	StartTime int64  // Unix nanoseconds at which it started to work
	Text      string // for people; "" leaves what was said before
	EvictedBy string // why the node ended it by itself, such as "pressure"; "": it did not
}

// text is what there is to say of the allocation after the update.
func (u *ClientUpdate) text(before string) string {
	switch {
	case u.Text != "":
		return u.Text
	case u.EvictedBy != "":
		return "evicted by its node: " + u.EvictedBy
	}
	return before
}

// ApplyClientUpdates writes what nodes report. An end is final: whatever is
// reported of an allocation after it is skipped. Jobs that are missing an
// instance by it are marked dirty and get at most one evaluation each, which
// are returned, ascending by job. Work that completes and is meant to is
// missing nothing; but the rest of a gang may have waited for a new place for
// it, and now needs none.
func (t *Txn) ApplyClientUpdates(now int64, updates []ClientUpdate) []*model.Evaluation {
	missing := newFollowUps(model.TriggerAllocStop, "")
	for _, u := range updates {
		old := t.Alloc(u.AllocID)
		if old == nil || old.Client.Terminal() {
			continue
		}
		a := *old
		a.Client = u.Status
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
		t.upsertAlloc(&a)
		done := a.Client == model.ClientComplete && a.Job.Type.Finite()
		if a.Client.Terminal() && a.Desired == model.DesiredRun && (!done || t.wasToMove(&a)) {
			missing.add(a.Job)
		}
	}
	return missing.write(t, now)
}

// wasToMove is whether a part of a gang was to be replaced where it ended.
func (t *Txn) wasToMove(a *model.Allocation) bool {
	if !a.Job.AllAtOnce {
		return false
	}
	node, job := t.Node(a.NodeID), t.Job(a.Job.Key())
	return node == nil || node.Drain || job != nil && job.Version != a.Job.Version
}
