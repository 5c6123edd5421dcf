package counterfactual

import (
	"context"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// An Answer lists the changes that would have spared a victim.
type Answer struct {
	Victim      Ref
	By          Ref        // the job or the binding that was placed; it has no ID
	Changes     []Flip     // at most one for each lattice
	Next        []Ref      // victims instead of it, if it could not be evicted
	Waiting     int        // instances or replicas more that would wait in that case
	Evaluations int        // that were executed
	Versions    []Eviction // all victims of the decision, with the policies that selected them
}

// A Flip is the smallest change of a lattice under which the victim stays.
type Flip struct {
	Change     Change
	Checkpoint bool  // the victim has passed a checkpoint by then
	Instead    []Ref // victims that the decision did not have before, ascending by ID
	Waiting    int   // instances or replicas more that would wait
}

// Ask returns the smallest changes that spare a victim. Requests of other groups are not
// varied; "" varies those of all groups. It returns ErrNotReproduced if the decision does
// not evict the victim, and the error of ctx once it is done.
func (x *Explorer) Ask(ctx context.Context, victimID, group string) (*Answer, error) {
	v := findVictim(x.c.Snap, victimID)
	key := x.c.Eval.JobKey()
	priority, requests, found := priorityOf(x.c.Snap, key, group)
	if v == nil || !found || !x.base.evicts(v.id) {
		return nil, ErrNotReproduced
	}
	answer := &Answer{
		Victim: refOf(x.c.Snap, victimID), By: Ref{Name: key.ID, Namespace: key.Namespace, JobID: key.ID, Priority: priority},
		Versions: x.Evicted(),
	}
	for _, lattice := range lattices(v, priority, requests) {
		flip, err := x.first(ctx, lattice, v)
		if err != nil {
			return nil, err
		}
		if flip != nil {
			answer.Changes = append(answer.Changes, *flip)
		}
	}
	snap, err := withoutVictim(x.c.Snap, v)
	if err != nil {
		return nil, err
	}
	without, err := x.decide(ctx, snap, x.c.Now)
	if err != nil {
		return nil, err
	}
	answer.Next, answer.Waiting = x.instead(&without), max(0, without.waiting-x.base.waiting)
	answer.Evaluations = x.used
	return answer, nil
}

// Lattices returns the lattices that Ask tries for a victim; nil if the state lacks it.
func (x *Explorer) Lattices(victimID, group string) [][]Change {
	v := findVictim(x.c.Snap, victimID)
	priority, requests, found := priorityOf(x.c.Snap, x.c.Eval.JobKey(), group)
	if v == nil || !found {
		return nil
	}
	return lattices(v, priority, requests)
}

func lattices(v *victim, priority int32, requests []Request) [][]Change {
	return append([][]Change{Priorities(v.priority, priority), Delays()}, Requests(requests)...)
}

// first returns the first change of a lattice under which the victim stays, or nil.
func (x *Explorer) first(ctx context.Context, lattice []Change, v *victim) (*Flip, error) {
	for _, c := range lattice {
		if x.used >= MaxEvaluations-1 {
			return nil, nil // the last one is for the next in line
		}
		out, err := x.under(ctx, c, v)
		if err != nil {
			return nil, err
		}
		if !out.faulty && !out.evicts(v.id) {
			return &Flip{
				Change: c, Checkpoint: v.passesCheckpoint(x.c.Now, c), Instead: x.instead(&out), Waiting: max(0, out.waiting-x.base.waiting),
			}, nil
		}
	}
	return nil, nil
}

// passesCheckpoint reports whether a victim passes a checkpoint before a later decision.
func (v *victim) passesCheckpoint(now int64, c Change) bool {
	if c.Kind != LaterDecision || v.alloc == nil {
		return false
	}
	age := v.alloc.Age(now)
	return v.alloc.Group.SavedWork(age+int64(c.Later)) > v.alloc.Group.SavedWork(age)
}

// under makes the decision under a change.
func (x *Explorer) under(ctx context.Context, c Change, v *victim) (outcome, error) {
	snap, now, err := x.apply(c, v)
	if err != nil {
		return outcome{}, err
	}
	return x.decide(ctx, snap, now)
}

// Spares reports whether a victim stays under a change.
func (x *Explorer) Spares(ctx context.Context, c Change, victimID string) (bool, error) {
	out, err := x.under(ctx, c, findVictim(x.c.Snap, victimID))
	return err == nil && !out.faulty && !out.evicts(victimID), err
}

// instead returns the victims that the decision did not have.
func (x *Explorer) instead(o *outcome) []Ref {
	var list []Ref
	for _, e := range o.evicted {
		if !x.base.evicts(e.ID) {
			list = append(list, refOf(x.c.Snap, e.ID))
		}
	}
	return list
}

// Reproduces reports whether the decision, made again, evicts the same victims as recorded,
// by the same versions of policies. Others of the same evaluation may be among them.
func (x *Explorer) Reproduces(recorded []Eviction) bool {
	return !slices.ContainsFunc(recorded, func(e Eviction) bool {
		return !slices.Contains(x.base.evicted, Eviction{model.WholeID(e.ID), e.Version})
	})
}

// refOf returns the description of an allocation or assignment in a state.
func refOf(snap *state.Snapshot, id string) Ref {
	v := findVictim(snap, id)
	if v == nil {
		return Ref{ID: id}
	}
	r := Ref{ID: id, Namespace: v.job.Namespace, JobID: v.job.ID, Priority: v.priority}
	if v.alloc != nil {
		r.Name, r.NodeID = model.AllocName(v.alloc.Group, v.alloc.Index, v.alloc.Incarnation), v.alloc.NodeID
	} else {
		r.Name, r.NodeID = v.job.ID+" on "+v.assignment.ClusterID, v.assignment.ClusterID
	}
	return r
}
