package counterfactual

import (
	"fmt"
	"maps"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A victim is an allocation, or an assignment of a binding.
type victim struct {
	id         string
	alloc      *model.Allocation // nil: assignment is set
	assignment *model.Assignment
	job        model.JobKey // of the victim, or its binding
	priority   int32
}

// findVictim returns a victim in a state, or nil. Replicas that were evicted from an
// assignment are found under its ID and under their own.
func findVictim(snap *state.Snapshot, id string) *victim {
	id = model.WholeID(id)
	if a := snap.Alloc(id); a != nil {
		return &victim{id: id, alloc: a, job: a.Job.Key(), priority: a.Job.Priority}
	}
	if a := snap.Assignment(id); a != nil {
		if b := snap.Binding(a.Binding); b != nil {
			return &victim{id: id, assignment: a, job: a.Binding, priority: b.Priority}
		}
	}
	return nil
}

// priorityOf returns the priority and the requests of a job or a binding. It returns
// false if the job does not exist.
func priorityOf(snap *state.Snapshot, key model.JobKey, group string) (priority int32, requests []Request, found bool) {
	if b := snap.Binding(key); b != nil {
		return b.Priority, []Request{{Resources: b.Resources}}, true
	}
	j := snap.Job(key)
	if j == nil {
		return 0, nil, false
	}
	for _, g := range j.Groups {
		if group == "" || g.Name == group {
			requests = append(requests, Request{g.Name, g.Resources})
		}
	}
	return j.Priority, requests, true
}

// apply returns the state and the time under a change.
func (x *Explorer) apply(c Change, v *victim) (*state.Snapshot, int64, error) {
	var snap *state.Snapshot
	var err error
	switch c.Kind {
	case LaterDecision:
		return x.c.Snap, x.c.Now + int64(c.Later), nil
	case HigherPriority:
		snap, err = withVictim(x.c.Snap, v, true, func(j *model.Job) { j.Priority += c.Priority }, func(b *model.Binding) { b.Priority += c.Priority })
	default:
		snap, err = withRequest(x.c.Snap, x.c.Eval.JobKey(), c)
	}
	return snap, x.c.Now, err
}

// withoutVictim returns a state in which a victim cannot be evicted, with the whole of a
// job that is evicted all or none.
func withoutVictim(snap *state.Snapshot, v *victim) (*state.Snapshot, error) {
	whole := v.alloc != nil && v.alloc.Job.AllOrNone
	return withVictim(snap, v, whole, func(j *model.Job) { j.NonPreemptible = true }, func(b *model.Binding) { b.ClusterScoped = true })
}

// withVictim returns a state in which the job or the binding of a victim is changed. If
// whole is not set, only the victim is of the changed job.
func withVictim(snap *state.Snapshot, v *victim, whole bool, ofJob func(*model.Job), ofBinding func(*model.Binding)) (*state.Snapshot, error) {
	fork := snap.Fork(snap.Index() + 1)
	if v.assignment != nil {
		b := *snap.Binding(v.job)
		ofBinding(&b)
		err := fork.BindingWriter().Upsert(&b)
		return fork.Snapshot(), err
	}
	allocs := []*model.Allocation{v.alloc}
	versions := map[*model.Job]*model.Job{}
	if whole {
		allocs = snap.AppendJobAllocs(nil, v.job)
		// The job itself may have been purged since.
		if current := snap.Job(v.job); current != nil {
			changed := changedJob(current, ofJob)
			if err := fork.JobWriter().Upsert(changed); err != nil {
				return nil, err
			}
			versions[current] = changed
		}
	}
	for _, a := range allocs {
		if versions[a.Job] == nil {
			versions[a.Job] = changedJob(a.Job, ofJob)
		}
		own := *a
		own.Job = versions[a.Job]
		own.Group = own.Job.Group(a.Group.Name)
		fork.AllocWriter().Upsert(&own)
	}
	return fork.Snapshot(), nil
}

func changedJob(j *model.Job, change func(*model.Job)) *model.Job {
	changed := *j
	changed.DetachGroups()
	change(&changed)
	return &changed
}

// withRequest returns a state in which a job or a binding requests another amount. Running
// instances of a job keep their amounts: its version stays the same. Assignments of a
// binding are of its current request, because another one would replace them.
func withRequest(snap *state.Snapshot, key model.JobKey, c Change) (*state.Snapshot, error) {
	fork := snap.Fork(snap.Index() + 1)
	if current := snap.Binding(key); current != nil {
		b := *current
		b.Resources = reduced(b.Resources, c)
		if err := fork.BindingWriter().Upsert(&b); err != nil {
			return nil, err
		}
		for _, a := range snap.BindingAssignments(key) {
			if a.Vec == current.TotalAsk(a.Replicas) {
				own := *a
				own.Vec = b.TotalAsk(a.Replicas)
				fork.AssignmentWriter().Upsert(&own)
			}
		}
		return fork.Snapshot(), nil
	}
	job := *snap.Job(key)
	job.DetachGroups()
	g := job.Group(c.Group)
	if g == nil {
		return nil, fmt.Errorf("job %s has no group %q", key, c.Group)
	}
	g.Resources = reduced(g.Resources, c)
	err := fork.JobWriter().Upsert(&job)
	return fork.Snapshot(), err
}

func reduced(r model.Resources, c Change) model.Resources {
	r = maps.Clone(r)
	r[c.Resource] = c.Amount
	return r
}
