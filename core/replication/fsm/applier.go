package fsm

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state"
)

// An applier applies one entry to a transaction. The outcome depends on the
// transaction and the entry only: not on a clock, chance, or the order of a map.
type applier struct {
	entry  *replication.Entry
	now    int64 // the entry's time
	txn    *state.Txn
	result *replication.Result

	modules []*state.Upload // to be stored before the commit
	unused  []string        // digests of modules to be deleted after it
}

// A handler applies a command, or refuses it. After a refusal the transaction is
// aborted.
type handler func(*applier, replication.Command) *replication.Refusal

func handle[C replication.Command](apply func(*applier, C) *replication.Refusal) handler {
	return func(a *applier, c replication.Command) *replication.Refusal { return apply(a, c.(C)) }
}

var handlers = replication.NewTable("fsm", map[replication.Kind]handler{
	replication.KindBootstrap:           handle((*applier).bootstrap),
	replication.KindSetVersion:          handle((*applier).setVersion),
	replication.KindRegisterJob:         handle((*applier).registerJob),
	replication.KindStopJob:             handle((*applier).stopJob),
	replication.KindStopAllocs:          handle((*applier).stopAllocs),
	replication.KindWriteEvals:          handle((*applier).writeEvals),
	replication.KindApplyPlans:          handle((*applier).applyPlans),
	replication.KindRegisterNodes:       handle((*applier).registerNodes),
	replication.KindChangeNodes:         handle((*applier).changeNodes),
	replication.KindDeleteNodes:         handle((*applier).deleteNodes),
	replication.KindUpdateAllocs:        handle((*applier).updateAllocs),
	replication.KindSetConfig:           handle((*applier).setConfig),
	replication.KindUpsertPriorityClass: handle((*applier).upsertPriorityClass),
	replication.KindDeletePriorityClass: handle((*applier).deletePriorityClass),
	replication.KindUpsertBudget:        handle((*applier).upsertBudget),
	replication.KindDeleteBudget:        handle((*applier).deleteBudget),
	replication.KindUpsertClusters:      handle((*applier).upsertClusters),
	replication.KindChangeClusters:      handle((*applier).changeClusters),
	replication.KindDeleteCluster:       handle((*applier).deleteCluster),
	replication.KindUpsertBinding:       handle((*applier).upsertBinding),
	replication.KindStopBinding:         handle((*applier).stopBinding),
	replication.KindDeleteBinding:       handle((*applier).deleteBinding),
	replication.KindEndAssignments:      handle((*applier).endAssignments),
	replication.KindUpdateAssignments:   handle((*applier).updateAssignments),
	replication.KindStopAssignments:     handle((*applier).stopAssignments),
	replication.KindCollect:             handle((*applier).collect),
	replication.KindPutChunk:            handle((*applier).putChunk),
	replication.KindLoadPolicy:          handle((*applier).loadPolicy),
	replication.KindCheckPolicy:         handle((*applier).checkPolicy),
	replication.KindChangePolicy:        handle((*applier).changePolicy),
	replication.KindPutToken:            handle((*applier).putToken),
	replication.KindDeleteToken:         handle((*applier).deleteToken),
})

// apply applies the entry's command.
func (a *applier) apply() *replication.Refusal {
	return handlers.Of(a.entry.Command)(a, a.entry.Command)
}

// lookupResult sets the result of an earlier entry with the same idempotency key,
// and reports whether there was one. If that entry answered another request, the
// result is a refusal.
func (a *applier) lookupResult() bool {
	if a.entry.Key == "" {
		return false
	}
	a.txn.ExpireIdempotencyRecords(a.now)
	first, ok := a.txn.IdempotencyRecord(a.entry.Key)
	if !ok {
		return false
	}
	if first.Hash != a.entry.Hash {
		a.result.Err = replication.Refuse(replication.CodeConflict,
			"idempotency key %q was used for another request, at index %d", a.entry.Key, first.Index)
		return true
	}
	a.result = a.loadResult(first)
	return true
}

// storeResult stores the result under the entry's idempotency key, if it has one.
func (a *applier) storeResult() {
	e := a.entry
	if e.Key == "" {
		return
	}
	a.txn.ExpireIdempotencyRecords(a.now)
	a.txn.AddIdempotencyRecord(e.Key, state.IdempotencyRecord{
		Hash: e.Hash, Index: a.result.Index, Time: a.now, Result: codec.EncodeResult(a.result),
	})
}

// loadResult returns a stored result. Its evaluations are the current ones; those
// that were deleted have an ID and a job only.
func (a *applier) loadResult(first state.IdempotencyRecord) *replication.Result {
	r, err := codec.DecodeResult(first.Result)
	if err != nil {
		panic("replication: decode a stored result: " + err.Error()) // EncodeResult wrote it
	}
	r.Index, r.Replayed = first.Index, true
	for i, ev := range r.Evals {
		if current := a.txn.Eval(ev.ID); current != nil {
			r.Evals[i] = current
		}
	}
	return r
}

// addEvals records evaluations that the entry wrote or that were derived from it.
func (a *applier) addEvals(evals []*model.Evaluation) {
	a.result.Evals = append(a.result.Evals, evals...)
}
