package sim

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
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

// writeInitial writes member clusters and the bindings that run at time 0.
func (b *bindings) writeInitial(txn *state.Txn, file *scenario.Resolved, jobs *jobStats) error {
	for _, c := range file.Clusters {
		if err := txn.ClusterWriter().Upsert(c); err != nil {
			return err
		}
	}
	for _, a := range file.Assigned {
		key := a.Binding.Key()
		if txn.Binding(key) == nil {
			if err := txn.BindingWriter().Upsert(a.Binding); err != nil {
				return err
			}
			jobs.unevaluated[key] = true
		}
		id := model.AssignmentID(key, a.Cluster, "running")
		b.entries[id] = a.ID
		txn.AssignmentWriter().Upsert(&model.Assignment{
			ID: id, Binding: key, ClusterID: a.Cluster, Replicas: a.Replicas, Vec: a.Binding.TotalAsk(a.Replicas),
			CreateTime: a.StartedAt, StartTime: a.StartedAt,
		})
	}
	return nil
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
		if err := txn.BindingWriter().Upsert(&fresh); err != nil {
			txn.Abort()
			return err
		}
	}
	ev := &model.Evaluation{
		ID: e.evalID(), Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding, Priority: b.Priority,
		TriggeredBy: trigger, CreateTime: e.now(), ModifyTime: e.now(),
	}
	txn.EvalWriter().Upsert(ev)
	snap := txn.Commit()
	if stopped {
		delete(e.jobs.last, b.Key())
	}
	e.record.collector.EvaluationCreated(1)
	e.feed.Evals(snap, e.now(), ev)
	return nil
}

// endBindings completes the assignments that are due to finish or to have stopped.
func (e *engine) endBindings(at int64, due []lifetime.End) {
	var ids []string
	snap := e.store.Snapshot()
	for _, end := range due {
		if !end.Binding {
			continue
		}
		if a := snap.Assignment(end.Alloc); a != nil && !a.Done && end.Stop != a.Live() {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	txn := e.begin()
	var places []string
	for _, id := range apply.AssignmentEnds(txn.AssignmentWriter(), at, ids...) {
		places = append(places, model.ClusterLocation(id))
	}
	e.feed.Freed(txn.Commit(), at, places...)
}

// A bindingCommit is the commit of a binding.
type bindingCommit struct {
	bound         *bindings
	timers        *lifetime.Ends
	record        *recorder
	now           int64
	plan          *model.Plan
	group         *model.CommitGroup
	before, after *state.Snapshot
}

// process starts the stops of victims and the runs of assignments. It returns the clusters
// that may have free capacity now.
func (c *bindingCommit) process() (rooms []string) {
	victims := c.withdrawn()
	for _, claim := range c.group.Claims {
		if claim.ClusterID == "" || len(victims) == 0 {
			continue
		}
		b := c.after.Binding(c.plan.Job)
		n := b.FittingReplicas(&claim.Vec, b.Replicas)
		slices.Sort(victims[claim.ID])
		c.bound.list = append(c.bound.list, Binding{
			At: At(c.now), Binding: b.ID, Clusters: map[string]int{claim.ClusterID: n}, Preempted: append([]string{}, victims[claim.ID]...),
		})
		c.bound.listed[claim.ID] = n
	}
	return append(c.released(), c.assigned()...)
}

// withdrawn schedules the stops of withdrawn assignments and names the victims by the
// claim that they are evicted for.
func (c *bindingCommit) withdrawn() map[string][]string {
	victims := map[string][]string{}
	for i := range c.group.Withdrawals {
		w := &c.group.Withdrawals[i]
		a := c.before.Assignment(w.AssignmentID)
		if a == nil || !a.Live() {
			continue
		}
		wait, checkpoint := int64(0), int64(0)
		if b := c.before.Binding(a.Binding); b != nil {
			wait, checkpoint = b.KillTimeout, b.Checkpoint
		}
		leaves := a.ID
		if w.Remaining > 0 {
			leaves = model.PartID(a.ID, w.By)
			c.bound.entries[leaves] = c.bound.name(a)
		}
		c.timers.Add(lifetime.End{At: c.now + wait, Alloc: leaves, Stop: true, Binding: true})
		if w.By == "" {
			continue
		}
		victims[w.By] = append(victims[w.By], c.bound.name(a))
		c.record.evicted = append(c.record.evicted, Evicted{
			At: At(c.now), Binding: a.Binding.ID, By: c.plan.Job.ID, Cluster: a.ClusterID, Replicas: a.Replicas - w.Remaining,
			LostWork: At(a.LostWork(c.now, checkpoint)),
		})
	}
	return victims
}

// released returns the clusters on which claims were released or assignments were
// stopped. A stopping assignment still holds its capacity, but other plans may claim
// it.
func (c *bindingCommit) released() (rooms []string) {
	for _, id := range c.group.ReleasedClaims {
		if claim := c.before.Claim(id); claim != nil {
			rooms = append(rooms, model.ClusterLocation(claim.ClusterID))
		}
	}
	for i := range c.group.Withdrawals {
		if a := c.before.Assignment(c.group.Withdrawals[i].AssignmentID); a != nil {
			rooms = append(rooms, model.ClusterLocation(a.ClusterID))
		}
	}
	return rooms
}

// assigned lists the new assignments, unless they were listed with the claim, and
// schedules their ends. It returns the clusters on which the binding now holds less.
func (c *bindingCommit) assigned() (rooms []string) {
	clusters := map[string]int{}
	for _, planned := range c.group.Assignments {
		a, old := c.after.Assignment(planned.ID), c.before.Assignment(planned.ID)
		if a == nil {
			continue
		}
		more := a.Replicas
		if old != nil {
			more -= old.Replicas
		} else {
			addBindingEnd(c.timers, c.after, a)
		}
		known := false
		for _, claim := range c.before.ClusterClaims(a.ClusterID) {
			known = known || claim.Claimant == c.plan.Job && c.bound.listed[claim.ID] == more
		}
		if !known && more > 0 {
			clusters[a.ClusterID] = more
		}
		if more < 0 || c.before.HasClaimOn(a.ClusterID, c.plan.Job) { // which it releases
			rooms = append(rooms, model.ClusterLocation(a.ClusterID))
		}
	}
	if len(clusters) > 0 {
		c.bound.list = append(c.bound.list, Binding{At: At(c.now), Binding: c.plan.Job.ID, Clusters: clusters, Preempted: []string{}})
	}
	return rooms
}

// unbound lists the replicas that bindings lack at the end, in order of the bindings.
// Replicas that have finished do not count.
func (j *jobStats) unbound(snap *state.Snapshot) (list []Unplaced) {
	for b := range snap.Bindings() {
		if b.Stopped {
			continue
		}
		out := j.last[b.Key()]
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
		case j.unevaluated[b.Key()]:
			reason = notEvaluated(b.Replicas-missing, b.Replicas, "replicas")
		}
		list = append(list, Unplaced{Binding: b.ID, Count: missing, Reason: reason})
	}
	return list
}
