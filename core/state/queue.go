package state

import "github.com/cede-scheduler/cede/core/model"

// An evaluation of a binding is queued by what the binding is now, whoever made
// it and from what: a priority that was changed while one waits or is being
// worked on counts from then on.

// rank gives an evaluation of a binding its place in the queue: the priority of
// the binding, and the index since which it waits.
func (t *Txn) rank(e *model.Evaluation) {
	if b := t.Binding(e.JobKey()); b != nil && !e.Status.Final() {
		e.Priority = t.config.QueuePriority(b)
	}
	e.Since = t.waitsSince(e)
}

// waitsSince is since when the binding of an evaluation has waited: since the
// evaluation that this one follows, or is another version of, else since the
// oldest that has not ended.
func (t *Txn) waitsSince(e *model.Evaluation) uint64 {
	for _, id := range [2]string{e.ID, e.Previous} {
		if old := t.Eval(id); old != nil && old.JobKey() == e.JobKey() {
			return old.ArrivalIndex()
		}
	}
	since := t.index
	for _, other := range t.EvalsOfJob(e.JobKey()) {
		if !other.Status.Final() {
			since = min(since, other.ArrivalIndex())
		}
	}
	return since
}
