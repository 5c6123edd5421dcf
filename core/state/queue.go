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

// ApplyQueuePriority brings the evaluations of a binding that wait up to its
// priority, and returns those that changed, ascending by id.
func (t *Txn) ApplyQueuePriority(now int64, b *model.Binding) (changed []*model.Evaluation) {
	priority := t.config.QueuePriority(b)
	for _, old := range t.EvalsOfJob(b.Key()) {
		if old.Status.Final() || old.Priority == priority {
			continue
		}
		e := *old
		e.ModifyTime = now
		t.upsertEval(&e)
		changed = append(changed, &e)
	}
	return changed
}

// ApplyQueuePriorities is ApplyQueuePriority for all bindings, after a change of
// the configuration.
func (t *Txn) ApplyQueuePriorities(now int64) (changed []*model.Evaluation) {
	for b := range t.Bindings() {
		changed = append(changed, t.ApplyQueuePriority(now, b)...)
	}
	return changed
}
