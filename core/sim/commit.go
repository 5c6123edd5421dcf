package sim

import (
	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// committed processes a commit: victims and stopped allocations begin to stop, and
// placements start once all of their victims have stopped.
func (e *engine) committed(snap *state.Snapshot, batch *apply.Batch, evals []*model.Evaluation) {
	e.record.collector.EvaluationCreated(len(evals))
	var rooms, ready, taken []string
	for _, bp := range batch.Plans {
		e.record.committed(e, bp.Plan, bp.Groups, e.before, snap)
		for _, i := range bp.Groups {
			g := &bp.Plan.Groups[i]
			rooms = e.stopAll(g, e.before, rooms)
			e.record.moves(e.now(), g, e.before)
			c := bindingCommit{&e.bound, &e.timers, &e.record, e.now(), bp.Plan, g, e.before, snap}
			rooms = append(rooms, c.process()...)
			for _, a := range g.Placements {
				if len(a.Group.Labels) > 0 {
					taken = append(taken, a.NodeID)
				}
				if !e.waiting.Waits(a.ID) {
					ready = append(ready, a.ID)
				}
			}
		}
	}
	rooms = append(rooms, snap.ChangedCohortNodes()...)
	e.start(ready...)
	snap = e.store.Snapshot()
	e.feed.Evals(snap, e.now(), evals...)
	e.feed.Freed(snap, e.now(), rooms...)
	e.feed.Placed(snap, e.now(), taken...)
}

// stopAll begins to stop the allocations that a commit group ends, and records the
// placements that wait for them. It adds the nodes that may have free capacity now.
func (e *engine) stopAll(g *model.CommitGroup, before *state.Snapshot, rooms []string) []string {
	for _, s := range g.Stops {
		a := before.Alloc(s.AllocID)
		if a == nil || !a.Live() {
			continue
		}
		rooms = append(rooms, a.NodeID)
		if s.Lost {
			e.record.collector.Lost(e.now(), a)
			continue
		}
		e.record.collector.Stopped(e.now(), a, s.MovedTo != "")
		if s.MovedTo != "" && a.Group.KillTimeout > 0 {
			e.waiting.AddMove(g, a)
		}
		e.beginStop(a)
	}
	for _, v := range g.Evictions {
		a := before.Alloc(v.AllocID)
		if a == nil || !a.Live() {
			continue
		}
		rooms = append(rooms, a.NodeID)
		if a.Group.KillTimeout > 0 && !a.Unknown(before.Node(a.NodeID)) { // no placement waits for a disconnected node
			e.waiting.Add(v.By, a.ID)
		}
		e.waiting.Inherit(v.By, a.ID)
		e.beginStop(a)
	}
	for _, u := range g.Updates {
		rooms = append(rooms, u.NodeID)
	}
	return rooms
}

// beginStop schedules the end of a stopping allocation. If its kill timeout is 0, the
// end is due at once.
func (e *engine) beginStop(a *model.Allocation) {
	e.timers.Add(lifetime.End{At: e.now() + a.Group.KillTimeout, Alloc: a.ID, Stop: true})
}
