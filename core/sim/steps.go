package sim

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// steps executes the file's steps of an instant, in order.
func (e *engine) steps(at int64) error {
	for ; e.next < len(e.file.Steps) && e.file.Steps[e.next].At <= at; e.next++ {
		step := &e.file.Steps[e.next]
		if err := e.step(step); err != nil {
			return fmt.Errorf("%s at %s: %w", step.Do, At(step.At), err)
		}
		e.tracer.mark(&e.components, timeline.Step, e.next)
		e.tracer.changes(&e.components)
	}
	return nil
}

func (e *engine) step(s *scenario.Step) error {
	ready, down, yes, no := model.NodeReady, model.NodeDown, true, false
	switch s.Do {
	case scenario.Submit:
		if s.Job == nil {
			return e.submitBinding(s.Binding)
		}
		return e.submit(s.Job)
	case scenario.Stop:
		if s.Job == nil {
			return e.stopBinding(s.Binding)
		}
		return e.stop(s.Job)
	case scenario.NodeDown:
		e.changeNode(s.Node, apply.NodeChange{Status: &down})
	case scenario.NodeUp:
		e.changeNode(s.Node, apply.NodeChange{Status: &ready, Drain: &no})
		e.returned(s.Node)
	case scenario.Drain:
		e.changeNode(s.Node, apply.NodeChange{Drain: &yes})
	}
	return nil
}

// submit registers a job if necessary and creates an evaluation.
func (e *engine) submit(j *model.Job) error {
	txn := e.begin()
	known := txn.Job(j.Key())
	if known == nil || known.Stopped {
		fresh := *j
		fresh.Stopped, fresh.SubmitTime = false, e.now()
		if known != nil {
			fresh.CreateIndex = known.CreateIndex
			fresh.Succeed(known)
		}
		if err := txn.JobWriter().Upsert(&fresh); err != nil {
			txn.Abort()
			return err
		}
		known = &fresh
	}
	ev := e.evaluation(known, model.TriggerJobRegister)
	txn.EvalWriter().Upsert(ev)
	snap := txn.Commit()
	e.jobs.register(known)
	e.record.collector.Submitted(e.now(), known)
	e.record.collector.EvaluationCreated(1)
	e.feed.Evals(snap, e.now(), ev)
	return nil
}

// stop marks a job as stopped.
func (e *engine) stop(j *model.Job) error {
	known := e.store.Snapshot().Job(j.Key())
	if known == nil || known.Stopped {
		return nil
	}
	txn := e.begin()
	stopped := *known
	stopped.Stopped = true
	if err := txn.JobWriter().Upsert(&stopped); err != nil {
		txn.Abort()
		return err
	}
	ev := e.evaluation(&stopped, model.TriggerJobStop)
	txn.EvalWriter().Upsert(ev)
	snap := txn.Commit()
	e.jobs.stop(&stopped)
	for _, g := range stopped.Groups {
		e.record.collector.Queued(e.now(), g, 0)
	}
	e.record.collector.EvaluationCreated(1)
	e.feed.Evals(snap, e.now(), ev)
	return nil
}

func (e *engine) evaluation(j *model.Job, trigger model.Trigger) *model.Evaluation {
	return &model.Evaluation{
		ID: e.evalID(), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority,
		TriggeredBy: trigger, CreateTime: e.now(), ModifyTime: e.now(),
	}
}

// changeNode applies a change of a node and enqueues the resulting evaluations.
func (e *engine) changeNode(id string, change apply.NodeChange) {
	txn := e.begin()
	evals := apply.NodeStatus(txn, e.now(), []string{id}, change)
	snap := txn.Commit()
	e.record.collector.NodeChanged(e.now(), snap.Node(id))
	e.record.collector.EvaluationCreated(len(evals))
	e.feed.Evals(snap, e.now(), evals...)
	e.feed.Freed(snap, e.now(), id) // also if it leaves: its domain no longer limits hard spreads
}

// ends completes the allocations that are due to finish or to have stopped at an instant.
func (e *engine) ends(at int64) {
	var updates []apply.ClientUpdate
	var rooms, stopped []string
	snap := e.store.Snapshot()
	due := e.timers.Due(at)
	e.endBindings(at, due)
	for _, end := range due {
		if end.Binding {
			continue
		}
		a := snap.Alloc(end.Alloc)
		if a == nil || a.Client.Terminal() || end.Stop != (a.Desired != model.DesiredRun) || e.disconnected.retainEnd(e.store.Snapshot(), a, end) {
			continue
		}
		updates = append(updates, apply.ClientUpdate{
			AllocID: a.ID, Status: model.ClientComplete, Started: a.Started, StartTime: a.StartTime,
		})
		if end.Stop {
			stopped = append(stopped, a.ID)
			continue
		}
		rooms = append(rooms, a.NodeID)
		e.record.collector.Finished(at, a)
	}
	if len(updates) == 0 {
		return
	}
	txn := e.begin()
	evals := apply.ClientUpdates(txn, at, updates)
	snap = txn.Commit()
	e.record.collector.EvaluationCreated(len(evals))
	e.feed.Evals(snap, at, evals...)
	e.feed.Freed(snap, at, append(rooms, snap.ChangedCohortNodes()...)...)
	for _, id := range stopped {
		e.start(e.waiting.Gone(id)...)
	}
}

// start starts placements whose victims have all stopped.
func (e *engine) start(ids ...string) {
	if ids = e.disconnected.reachable(e.store.Snapshot(), ids); len(ids) == 0 {
		return
	}
	now := e.now()
	var updates []apply.ClientUpdate
	snap := e.store.Snapshot()
	for _, id := range ids {
		if a := snap.Alloc(id); a != nil && a.Live() {
			updates = append(updates, apply.ClientUpdate{
				AllocID: id, Status: model.ClientRunning, Started: true, StartTime: now,
			})
		}
	}
	if len(updates) == 0 {
		return
	}
	txn := e.begin()
	apply.ClientUpdates(txn, now, updates)
	snap = txn.Commit()
	for _, u := range updates {
		a := snap.Alloc(u.AllocID)
		e.record.collector.Started(now, a)
		addEnd(&e.timers, e.file, a, now)
	}
}
