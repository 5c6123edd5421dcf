package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// evalTable holds the evaluations by ID. Their lists by job are in jobRow. Final
// evaluations remain until garbage collection.
type evalTable struct {
	evals     cow.Table[*model.Evaluation]
	evalAt    cow.Vec[int32] // by slot: position in jobRow.evals
	evalOrder *cow.Ordering
}

func newEvalTable() evalTable { return evalTable{evalOrder: &cow.Ordering{}} }

func (v *evalTable) findEval(id string) (int32, bool) {
	return v.evals.Find(hashID(id), func(slot int32) bool { return v.evals.At(slot).ID == id })
}

// Eval returns the evaluation with the ID, or nil if there is none.
func (v *evalTable) Eval(id string) *model.Evaluation {
	if slot, ok := v.findEval(id); ok {
		return v.evals.At(slot)
	}
	return nil
}

// EvalCount returns the number of evaluations.
func (v *evalTable) EvalCount() int { return v.evals.Len() }

// Evals yields the evaluations, ascending by ID.
func (v *evalTable) Evals() iter.Seq[*model.Evaluation] {
	return func(yield func(*model.Evaluation) bool) {
		slots := v.evalOrder.Slots(v.evals.Size(),
			func(slot int32) bool { return v.evals.At(slot) != nil },
			func(a, b int32) int { return strings.Compare(v.evals.At(a).ID, v.evals.At(b).ID) })
		for _, slot := range slots {
			if !yield(v.evals.At(slot)) {
				return
			}
		}
	}
}

// EvalsOfJob returns the evaluations of a job or binding, ascending by ID. The slice
// belongs to the caller. It costs a sort of the job's evaluations.
func (v *View) EvalsOfJob(key model.JobKey) []*model.Evaluation {
	return v.evalsOfJob(key, func(*model.Evaluation) bool { return true })
}

// PendingEvals returns the evaluations of a job or binding that are not final, as
// EvalsOfJob. A job that is written often has few of them among thousands of final ones,
// so that writes call this method: it sorts only what it returns.
func (v *View) PendingEvals(key model.JobKey) []*model.Evaluation {
	return v.evalsOfJob(key, func(e *model.Evaluation) bool { return !e.Status.Final() })
}

// evalsOfJob returns the evaluations of a job or binding that match, ascending by ID.
func (v *View) evalsOfJob(key model.JobKey, match func(*model.Evaluation) bool) (evals []*model.Evaluation) {
	r := v.jobRow(key)
	if r == nil {
		return nil
	}
	for slot := range r.evals.All {
		if e := v.evals.At(slot); match(e) {
			evals = append(evals, e)
		}
	}
	slices.SortFunc(evals, func(a, b *model.Evaluation) int { return strings.Compare(a.ID, b.ID) })
	return evals
}

// Upsert stores evaluations, or other versions of them, and sets their indexes.
// The job of an evaluation must not change. An evaluation of a binding gets the current
// priority of the binding. It panics if the job changes, or if a stored version is
// written again without a copy, because snapshots share it.
func (t EvalWriter) Upsert(evals ...*model.Evaluation) {
	for _, e := range evals {
		t.upsert(e)
	}
}

func (t EvalWriter) upsert(e *model.Evaluation) {
	if e.Type == model.JobBinding && !t.restores {
		t.setBindingRank(e)
	}
	if slot, ok := t.findEval(e.ID); ok {
		old := t.evals.At(slot)
		switch {
		case old == e:
			panic("state: evaluation " + e.ID + " written again without a copy")
		case old.JobKey() != e.JobKey():
			panic("state: evaluation " + e.ID + " changed its job")
		}
		t.stamp(&e.CreateIndex, &e.ModifyIndex, old.CreateIndex)
		t.evals.Set(t.owner, slot, e)
	} else {
		t.stamp(&e.CreateIndex, &e.ModifyIndex, 0)
		slot := t.evals.Insert(t.owner, hashID(e.ID), e)
		t.evalOrder = t.evalOrder.With(t.owner, slot)
		_, r := t.ownJob(t.owner, e.JobKey())
		setAt(&t.evalAt, t.owner, slot, r.evals.Add(t.owner, slot))
	}
	t.touchEval(e)
}

// setBindingRank sets the queue priority and the waiting index of a binding's
// evaluation. Both follow the binding as it is now, so that a priority that changes
// while an evaluation is pending counts from then on.
func (t EvalWriter) setBindingRank(e *model.Evaluation) {
	if b := t.Binding(e.JobKey()); b != nil && !e.Status.Final() {
		e.Priority = t.config.QueuePriority(b)
	}
	e.Since = t.pendingSince(e)
}

// pendingSince returns the index since which the binding of an evaluation waits:
// that of the evaluation that this one follows or replaces, else that of the oldest
// evaluation that is not final.
func (v *View) pendingSince(e *model.Evaluation) uint64 {
	for _, id := range [2]string{e.ID, e.Previous} {
		if old := v.Eval(id); old != nil && old.JobKey() == e.JobKey() {
			return old.ArrivalIndex()
		}
	}
	since := v.index
	for _, other := range v.PendingEvals(e.JobKey()) {
		since = min(since, other.ArrivalIndex())
	}
	return since
}

// Delete deletes evaluations; missing ones are skipped.
func (t EvalWriter) Delete(ids ...string) {
	for _, id := range ids {
		if slot, ok := t.findEval(id); ok {
			t.deleteAt(slot)
		}
	}
}

func (t EvalWriter) deleteAt(slot int32) {
	e := t.evals.At(slot)
	job, r := t.ownJob(t.owner, e.JobKey())
	r.evals.Remove(t.owner, t.evalAt.At(int(slot)), func(slot, at int32) {
		t.evalAt.Set(t.owner, int(slot), at)
	})
	t.evals.Delete(t.owner, hashID(e.ID), slot)
	t.evalOrder = t.evalOrder.With(t.owner, slot)
	t.releaseJob(t.owner, job, r)
	t.touchEval(e)
}

func (t EvalWriter) touchEval(e *model.Evaluation) {
	t.touch(TableEvals.Of(e.ID))
	t.touch(TableJobEvals.OfJob(e.JobKey()))
}

// setAt records the position of a slot in the list of its job. A slot that is used
// again has a position already; a new one is always the next.
func setAt(v *cow.Vec[int32], o cow.Owner, slot, at int32) {
	if int(slot) == v.Len() {
		v.Append(o, at)
		return
	}
	v.Set(o, int(slot), at)
}
