package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	"github.com/cede-scheduler/cede/core/state"
)

// tracer reports the timeline of a run. It compares snapshots instead of recording
// calls, so that a change which the engine does not expect is reported as well.
type tracer struct {
	report      func(timeline.Event) // nil: nothing is reported
	allocs      map[string]allocStatus
	assignments map[string]assignmentStatus
	claims      map[string]*model.Claim
	last        *state.Snapshot // of the last call of changes
}

type allocStatus struct{ live, started, terminal bool }

type assignmentStatus struct {
	live, done bool
	replicas   int
}

func newTracer(report func(timeline.Event)) tracer {
	return tracer{report: report, allocs: map[string]allocStatus{}, assignments: map[string]assignmentStatus{}, claims: map[string]*model.Claim{}, last: &state.Snapshot{}}
}

// initial records the state at time 0 without reporting it: the file describes it.
func (t *tracer) initial(c *components) {
	if t.report == nil {
		return
	}
	report := t.report
	t.report = func(timeline.Event) {}
	t.changes(c)
	t.report = report
}

// mark reports an event that is not a change of an allocation.
func (t *tracer) mark(c *components, kind timeline.Kind, step int) {
	if t.report != nil {
		t.report(timeline.Event{At: c.now(), Entry: c.store.Snapshot().Index(), Kind: kind, Step: step})
	}
}

// changes reports the difference to the last call, in the order of log entries: several can
// be applied between two calls. Ends of an entry come before its placements, because one
// plan contains both.
func (t *tracer) changes(c *components) {
	if t.report == nil {
		return
	}
	snap, now := c.store.Snapshot(), c.now()
	var ends, starts []timeline.Event
	for _, a := range snap.ChangedAllocs(t.last) {
		old, known := t.allocs[a.ID]
		status := allocStatus{live: a.Live(), started: a.Started, terminal: a.Client.Terminal()}
		if known && old == status {
			continue
		}
		t.allocs[a.ID] = status
		more, placed := allocEvents(now, a, old, status, known)
		ends, starts = append(ends, more...), append(starts, placed...)
	}
	t.last = snap
	ends, starts = t.bindings(now, snap, ends, starts)
	all := slices.Concat(ends, starts)
	slices.SortStableFunc(all, func(a, b timeline.Event) int { return cmp.Compare(a.Entry, b.Entry) })
	for _, ev := range all {
		t.report(ev)
	}
}

// allocEvents returns the events of one allocation.
func allocEvents(at int64, a *model.Allocation, old, now allocStatus, known bool) (ends, starts []timeline.Event) {
	ev := timeline.Event{
		At: at, Entry: a.ModifyIndex, Alloc: a.ID, Job: a.Job.ID, Group: a.Group.Name, Index: a.Index,
		Node: a.NodeID, By: a.PreemptedBy, SavedWork: a.SavedWork,
	}
	for _, d := range a.Devices {
		ev.Devices = append(ev.Devices, timeline.Device(d))
	}
	of := func(kind timeline.Kind) timeline.Event {
		ev.Kind = kind
		return ev
	}
	if !known {
		placed := of(timeline.Placed)
		placed.Entry, placed.Moved = a.CreateIndex, a.MovedFrom
		starts = append(starts, placed)
	}
	if now.started && !old.started {
		starts = append(starts, of(timeline.Started))
	}
	if !now.live && (old.live || !known) {
		end := of(endKind(a))
		if end.Kind == timeline.Stopped {
			end.Moved = a.MovedTo
		}
		ends = append(ends, end)
	}
	if now.terminal && !old.terminal && a.Desired != model.DesiredRun && a.Client != model.ClientLost {
		ends = append(ends, of(timeline.Gone))
	}
	return ends, starts
}

// endKind returns why an allocation is not live.
func endKind(a *model.Allocation) timeline.Kind {
	switch {
	case a.Desired == model.DesiredEvict:
		return timeline.Evicted
	case a.Client == model.ClientLost:
		return timeline.Lost
	case a.Desired == model.DesiredStop:
		return timeline.Stopped
	}
	return timeline.Finished
}

// bindings appends the events of assignments and claims.
func (t *tracer) bindings(at int64, snap *state.Snapshot, ends, starts []timeline.Event) ([]timeline.Event, []timeline.Event) {
	for a := range snap.Assignments() {
		old, known := t.assignments[a.ID]
		now := assignmentStatus{live: a.Live(), done: a.Done, replicas: a.Replicas}
		if known && old == now {
			continue
		}
		t.assignments[a.ID] = now
		ev := timeline.Event{At: at, Entry: a.ModifyIndex, Alloc: a.ID, Job: a.Binding.ID, Node: a.ClusterID, Replicas: a.Replicas}
		of := func(kind timeline.Kind) timeline.Event {
			ev.Kind = kind
			return ev
		}
		switch {
		case !known:
			starts = append(starts, of(timeline.Assigned))
		case old.replicas != now.replicas:
			ends = append(ends, of(timeline.Resized))
		}
		if !now.live && (old.live || !known) {
			left := of(timeline.Withdrawn)
			if key, _, ok := model.ParseClaimID(a.PreemptedBy); ok {
				left.By = key.ID
			}
			ends = append(ends, left)
		}
		if now.done && !old.done {
			ends = append(ends, of(timeline.Released))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.assignments)) {
		if snap.Assignment(id) != nil {
			continue
		}
		if !t.assignments[id].done {
			ends = append(ends, timeline.Event{At: at, Entry: snap.Index(), Kind: timeline.Released, Alloc: id})
		}
		delete(t.assignments, id)
	}
	return t.reservations(at, snap, ends, starts)
}

func (t *tracer) reservations(at int64, snap *state.Snapshot, ends, starts []timeline.Event) ([]timeline.Event, []timeline.Event) {
	now := map[string]*model.Claim{}
	event := func(kind timeline.Kind, c *model.Claim) timeline.Event {
		return timeline.Event{At: at, Entry: snap.Index(), Kind: kind, Alloc: c.ID, Job: c.Claimant.ID, Node: c.ClusterID}
	}
	for c := range snap.Claims() {
		now[c.ID] = c
		if t.claims[c.ID] == nil {
			starts = append(starts, event(timeline.Claimed, c))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.claims)) {
		if now[id] == nil {
			ends = append(ends, event(timeline.Unclaimed, t.claims[id]))
		}
	}
	t.claims = now
	return ends, starts
}
