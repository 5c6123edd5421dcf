package state

import (
	"iter"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

func (v *View) findEval(id string) (int32, bool) {
	return v.evals.index.Find(hashID(id), func(slot int32) bool { return v.evals.at(slot).ID == id })
}

// Eval is the evaluation with this id; nil when there is none.
func (v *View) Eval(id string) *model.Evaluation {
	if slot, ok := v.findEval(id); ok {
		return v.evals.at(slot)
	}
	return nil
}

// EvalCount is the number of evaluations.
func (v *View) EvalCount() int { return v.evals.len() }

// Evals yields the evaluations, ascending by id.
func (v *View) Evals() iter.Seq[*model.Evaluation] {
	return func(yield func(*model.Evaluation) bool) {
		slots := v.evalOrder.slots(v.evals.size(),
			func(slot int32) bool { return v.evals.at(slot) != nil },
			func(a, b int32) int { return strings.Compare(v.evals.at(a).ID, v.evals.at(b).ID) })
		for _, slot := range slots {
			if !yield(v.evals.at(slot)) {
				return
			}
		}
	}
}

// EvalsOfJob is the evaluations of a job, ascending by id.
func (v *View) EvalsOfJob(key model.JobKey) []*model.Evaluation {
	r := v.jobRow(key)
	if r == nil {
		return nil
	}
	evals := make([]*model.Evaluation, 0, r.evals.Len())
	for slot := range r.evals.All {
		evals = append(evals, v.evals.at(slot))
	}
	slices.SortFunc(evals, func(a, b *model.Evaluation) int { return strings.Compare(a.ID, b.ID) })
	return evals
}

// UpsertEvals stores evaluations, or other versions of them, and sets their
// indexes. An evaluation keeps its job for life.
func (t *Txn) UpsertEvals(evals ...*model.Evaluation) {
	for _, e := range evals {
		t.upsertEval(e)
	}
}

func (t *Txn) upsertEval(e *model.Evaluation) {
	if e.Type == model.JobBinding && !t.restores {
		t.rank(e)
	}
	if slot, ok := t.findEval(e.ID); ok {
		old := t.evals.at(slot)
		switch {
		case old == e:
			panic("state: evaluation " + e.ID + " written again without a copy")
		case old.JobKey() != e.JobKey():
			panic("state: evaluation " + e.ID + " changed its job")
		}
		t.stamp(&e.CreateIndex, &e.ModifyIndex, old.CreateIndex)
		t.evals.set(t.owner, slot, e)
	} else {
		t.stamp(&e.CreateIndex, &e.ModifyIndex, 0)
		slot := t.evals.insert(t.owner, hashID(e.ID), e)
		t.evalOrder = t.evalOrder.with(t.owner, slot)
		_, r := t.ownJob(e.JobKey())
		setAt(&t.evalAt, t.owner, slot, r.evals.Add(t.owner, slot))
	}
	t.touchEval(e)
}

// DeleteEvals forgets evaluations; ids that are not there are skipped.
func (t *Txn) DeleteEvals(ids ...string) {
	for _, id := range ids {
		if slot, ok := t.findEval(id); ok {
			t.deleteEval(slot)
		}
	}
}

func (t *Txn) deleteEval(slot int32) {
	e := t.evals.at(slot)
	job, r := t.ownJob(e.JobKey())
	r.evals.Remove(t.owner, t.evalAt.At(int(slot)), func(slot, at int32) {
		t.evalAt.Set(t.owner, int(slot), at)
	})
	t.evals.delete(t.owner, hashID(e.ID), slot)
	t.evalOrder = t.evalOrder.with(t.owner, slot)
	t.releaseJob(job, r)
	t.touchEval(e)
}

func (t *Txn) touchEval(e *model.Evaluation) {
	t.touch(TableEvals.Of(e.ID))
	t.touch(TableJobEvals.OfJob(e.JobKey()))
}

// setAt notes where in its job's list a slot is.
func setAt(v *cow.Vec[int32], o cow.Owner, slot, at int32) {
	if int(slot) == v.Len() {
		v.Append(o, at)
		return
	}
	v.Set(o, int(slot), at)
}
