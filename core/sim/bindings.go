package sim

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// bindings records the events of bindings.
type bindings struct {
	list []Binding
	// entries maps assignments to the IDs of the running entries that they came from;
	// other assignments are named after their binding.
	entries map[string]string
	// listed holds the claims with which a binding was already listed, so that it is
	// not listed again when it gets the capacity.
	listed map[string]int
}

func newBindings() bindings {
	return bindings{list: []Binding{}, entries: map[string]string{}, listed: map[string]int{}}
}

// name returns the name of an assignment in results.
func (b *bindings) name(a *model.Assignment) string {
	if id, ok := b.entries[a.ID]; ok {
		return id
	}
	return a.Binding.ID
}

// running returns the names of the assigned bindings, each once.
func (b *bindings) running(snap *state.Snapshot) (ids []string) {
	for a := range snap.Assignments() {
		if id := b.name(a); a.Live() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// writeInitialBindings writes member clusters and the bindings that run at time 0.
func (e *engine) writeInitialBindings(txn *state.Txn) error {
	for _, c := range e.file.Clusters {
		if err := txn.UpsertCluster(c); err != nil {
			return err
		}
	}
	for _, a := range e.file.Assigned {
		key := a.Binding.Key()
		if txn.Binding(key) == nil {
			if err := txn.UpsertBinding(a.Binding); err != nil {
				return err
			}
			e.jobs.unevaluated[key] = true
		}
		id := model.AssignmentID(key, a.Cluster, "running")
		e.bound.entries[id] = a.ID
		txn.UpsertAssignment(&model.Assignment{
			ID: id, Binding: key, ClusterID: a.Cluster, Replicas: a.Replicas, Vec: a.Binding.TotalAsk(a.Replicas),
			CreateTime: a.StartedAt, StartTime: a.StartedAt,
		})
	}
	return nil
}

// scheduleInitialBindings schedules the ends of the bindings that run at time 0.
func (e *engine) scheduleInitialBindings(snap *state.Snapshot) {
	for a := range snap.Assignments() {
		e.scheduleBindingEnd(snap, a)
	}
}

func (e *engine) scheduleBindingEnd(snap *state.Snapshot, a *model.Assignment) {
	if b := snap.Binding(a.Binding); b != nil && b.Duration > 0 {
		e.timers.addBinding(max(a.StartTime+b.Duration, 0), a.ID, false)
	}
}

func (e *engine) submitBinding(b *model.Binding) error {
	return e.changeBinding(b, false, model.TriggerJobRegister)
}

func (e *engine) stopBinding(b *model.Binding) error {
	if known := e.store.Snapshot().Binding(b.Key()); known == nil || known.Stopped {
		return nil
	}
	return e.changeBinding(b, true, model.TriggerJobStop)
}

// changeBinding registers a binding or marks it as stopped, and creates an
// evaluation.
func (e *engine) changeBinding(b *model.Binding, stopped bool, trigger model.Trigger) error {
	txn := e.begin()
	known := txn.Binding(b.Key())
	if known == nil || known.Stopped != stopped {
		fresh := *b
		fresh.Stopped, fresh.SubmitTime = stopped, e.now()
		if err := txn.UpsertBinding(&fresh); err != nil {
			txn.Abort()
			return err
		}
	}
	ev := &model.Evaluation{
		ID: e.evalID(), Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding, Priority: b.Priority,
		TriggeredBy: trigger, CreateTime: e.now(), ModifyTime: e.now(),
	}
	txn.UpsertEvals(ev)
	snap := txn.Commit()
	if stopped {
		delete(e.jobs.last, b.Key())
	}
	e.record.collector.EvaluationCreated(1)
	e.feed.Evals(snap, e.now(), ev)
	return nil
}

// endBindings completes the assignments that are due to finish or to have stopped.
func (e *engine) endBindings(at int64, due []end) {
	var ids []string
	snap := e.store.Snapshot()
	for _, end := range due {
		if !end.binding {
			continue
		}
		if a := snap.Assignment(end.alloc); a != nil && !a.Done && end.stop != a.Live() {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	txn := e.begin()
	var places []string
	for _, id := range apply.AssignmentEnds(txn, at, ids...) {
		places = append(places, model.ClusterLocation(id))
	}
	e.feed.Freed(txn.Commit(), at, places...)
}

// committedBinding processes a commit of a binding: victims begin to stop, and
// assignments start. It adds the clusters that may have free capacity now.
func (e *engine) committedBinding(plan *model.Plan, g *model.CommitGroup, before, after *state.Snapshot, rooms []string) []string {
	victims := e.withdrawn(plan, g, before)
	for _, c := range g.Claims {
		if c.ClusterID == "" || len(victims) == 0 {
			continue
		}
		b := after.Binding(plan.Job)
		n := b.FittingReplicas(&c.Vec, b.Replicas)
		slices.Sort(victims[c.ID])
		e.bound.list = append(e.bound.list, Binding{
			At: At(e.now()), Binding: b.ID, Clusters: map[string]int{c.ClusterID: n}, Preempted: append([]string{}, victims[c.ID]...),
		})
		e.bound.listed[c.ID] = n
	}
	rooms = e.released(g, before, rooms)
	return e.assigned(plan, g, before, after, rooms)
}

// withdrawn schedules the stops of withdrawn assignments and names the victims by the
// claim that they are evicted for.
func (e *engine) withdrawn(plan *model.Plan, g *model.CommitGroup, before *state.Snapshot) map[string][]string {
	victims := map[string][]string{}
	for i := range g.Withdrawals {
		w := &g.Withdrawals[i]
		a := before.Assignment(w.AssignmentID)
		if a == nil || !a.Live() {
			continue
		}
		wait, checkpoint := int64(0), int64(0)
		if b := before.Binding(a.Binding); b != nil {
			wait, checkpoint = b.KillTimeout, b.Checkpoint
		}
		leaves := a.ID
		if w.Remaining > 0 {
			leaves = model.PartID(a.ID, w.By)
			e.bound.entries[leaves] = e.bound.name(a)
		}
		e.timers.addBinding(e.now()+wait, leaves, true)
		if w.By == "" {
			continue
		}
		victims[w.By] = append(victims[w.By], e.bound.name(a))
		e.record.evicted = append(e.record.evicted, Evicted{
			At: At(e.now()), Binding: a.Binding.ID, By: plan.Job.ID, Cluster: a.ClusterID, Replicas: a.Replicas - w.Remaining,
			LostWork: At(a.LostWork(e.now(), checkpoint)),
		})
	}
	return victims
}

// released adds the clusters on which claims were released or assignments were
// stopped. A stopping assignment still holds its capacity, but other plans may claim
// it.
func (e *engine) released(g *model.CommitGroup, before *state.Snapshot, rooms []string) []string {
	for _, id := range g.ReleasedClaims {
		if c := before.Claim(id); c != nil {
			rooms = append(rooms, model.ClusterLocation(c.ClusterID))
		}
	}
	for i := range g.Withdrawals {
		if a := before.Assignment(g.Withdrawals[i].AssignmentID); a != nil {
			rooms = append(rooms, model.ClusterLocation(a.ClusterID))
		}
	}
	return rooms
}

// assigned lists the new assignments, unless they were listed with the claim, and
// schedules their ends.
func (e *engine) assigned(plan *model.Plan, g *model.CommitGroup, before, after *state.Snapshot, rooms []string) []string {
	clusters := map[string]int{}
	for _, planned := range g.Assignments {
		a, old := after.Assignment(planned.ID), before.Assignment(planned.ID)
		if a == nil {
			continue
		}
		more := a.Replicas
		if old != nil {
			more -= old.Replicas
		} else {
			e.scheduleBindingEnd(after, a)
		}
		known := false
		for _, c := range before.ClusterClaims(a.ClusterID) {
			known = known || c.Claimant == plan.Job && e.bound.listed[c.ID] == more
		}
		if !known && more > 0 {
			clusters[a.ClusterID] = more
		}
		if more < 0 || before.HasClaimOn(a.ClusterID, plan.Job) { // which it releases
			rooms = append(rooms, model.ClusterLocation(a.ClusterID))
		}
	}
	if len(clusters) > 0 {
		e.bound.list = append(e.bound.list, Binding{At: At(e.now()), Binding: plan.Job.ID, Clusters: clusters, Preempted: []string{}})
	}
	return rooms
}

// unbound lists the replicas that bindings lack at the end, in order of the bindings.
// Replicas that have finished do not count.
func (e *engine) unbound(snap *state.Snapshot) (list []Unplaced) {
	for b := range snap.Bindings() {
		if b.Stopped {
			continue
		}
		out := e.jobs.last[b.Key()]
		missing := b.Replicas
		for _, a := range snap.BindingAssignments(b.Key()) {
			if a.CountsAsPlaced() {
				missing -= a.Replicas
			}
		}
		if b.Duplicated { // the scheduler determines the number of clusters
			missing = 0
			if out != nil {
				missing = out.Queued[b.ID]
			}
		}
		if missing <= 0 {
			continue
		}
		reason := fmt.Sprintf("%d replicas have ended", missing)
		switch {
		case out != nil && out.Fault != nil:
			reason = out.Fault.Error()
		case out != nil && out.Failed[b.ID] != nil:
			reason = out.Failed[b.ID].String()
		case e.jobs.unevaluated[b.Key()]:
			reason = notEvaluated(b.Replicas-missing, b.Replicas, "replicas")
		}
		list = append(list, Unplaced{Binding: b.ID, Count: missing, Reason: reason})
	}
	return list
}
