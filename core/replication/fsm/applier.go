package fsm

import (
	"cmp"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state"
)

// An applier applies one entry to a transaction. The outcome depends on the transaction
// and the entry only: not on a clock, chance, or the order of a map. It lives for one
// entry. The values in the entry belong to it, and handlers store them in the state
// without a copy.
type applier struct {
	entry  *replication.Entry
	now    int64 // the entry's time
	txn    *state.Txn
	result *replication.Result

	modules []*state.Upload // to be stored before the commit
	unused  []string        // digests of modules to be deleted after it
	restore *state.Upload   // the snapshot that replaces the state; nil: none
}

// A handler applies a command, or refuses it. After a refusal the transaction is
// aborted. Effects outside the transaction, on modules, wait for the commit.
type handler func(*applier, replication.Command) *replication.Refusal

func handle[C replication.Command](apply func(*applier, C) *replication.Refusal) handler {
	return func(a *applier, c replication.Command) *replication.Refusal { return apply(a, c.(C)) }
}

// write returns the handler of a command that concerns one table: apply reads the
// state and writes that table alone.
func write[W any, C replication.Command](table func(*state.Txn) W, apply func(W, C) *replication.Refusal) handler {
	return func(a *applier, c replication.Command) *replication.Refusal { return apply(table(a.txn), c.(C)) }
}

var handlers = replication.NewTable("fsm", map[replication.Kind]handler{
	replication.KindBootstrap:           write((*state.Txn).ConfigWriter, bootstrap),
	replication.KindSetVersion:          write((*state.Txn).ConfigWriter, setVersion),
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
	replication.KindUpsertPriorityClass: write((*state.Txn).PriorityClassWriter, upsertPriorityClass),
	replication.KindDeletePriorityClass: write((*state.Txn).PriorityClassWriter, deletePriorityClass),
	replication.KindUpsertNamespace:     write((*state.Txn).NamespaceWriter, upsertNamespace),
	replication.KindDeleteNamespace:     handle(deleteNamespace),
	replication.KindUpsertBudget:        write((*state.Txn).BudgetWriter, upsertBudget),
	replication.KindDeleteBudget:        write((*state.Txn).BudgetWriter, deleteBudget),
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
	replication.KindRestoreState:        handle(restoreState),
	replication.KindLoadPolicy:          handle((*applier).loadPolicy),
	replication.KindCheckPolicy:         write((*state.Txn).PolicyWriter, checkPolicy),
	replication.KindReportShadow:        write((*state.Txn).PolicyWriter, reportShadow),
	replication.KindChangePolicy:        handle((*applier).changePolicy),
	replication.KindPutToken:            write((*state.Txn).TokenWriter, putToken),
	replication.KindDeleteToken:         write((*state.Txn).TokenWriter, deleteToken),
	replication.KindPutSigner:           write((*state.Txn).SignerWriter, putSigner),
})

// apply applies the entry's command.
func (a *applier) apply() *replication.Refusal {
	return handlers.Of(a.entry.Command)(a, a.entry.Command)
}

// lookupResult sets the result of an earlier entry with the same idempotency key, and
// reports whether there was one. If that entry answered another request, the result is
// a refusal. It runs before the command, so a repeated request has no effect.
func (a *applier) lookupResult() bool {
	if a.entry.Key == "" {
		return false
	}
	a.txn.IdempotencyWriter().Expire(a.now)
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
// Refusals are stored as well: a request that is repeated after a refusal gets the same
// answer, even if it would succeed now.
func (a *applier) storeResult() {
	e := a.entry
	if e.Key == "" {
		return
	}
	stored := *a.result
	if a.txn.Meta().Version < storedModifyIndexFrom {
		stored.ModifyIndex = stored.Index
	}
	a.txn.IdempotencyWriter().Expire(a.now)
	a.txn.IdempotencyWriter().Add(e.Key, state.IdempotencyRecord{
		Hash: e.Hash, Index: a.result.Index, Time: a.now, Result: codec.EncodeResult(&stored),
	})
}

// storeAudit stores the audit record of an entry, if it has one.
func storeAudit(e *replication.Entry, txn *state.Txn) {
	if e.Audit == nil {
		return
	}
	r := *e.Audit // observers share the entry
	r.Index, r.Time = txn.Index(), e.Time
	txn.AuditWriter().Append(&r)
}

// storedModifyIndexFrom is the first cluster version that stores the ModifyIndex of a
// result. Servers of an older release would derive another state.
const storedModifyIndexFrom = 2

// loadResult returns a stored result. Its evaluations are the current ones; those that
// were deleted have an ID and a job only. The caller of a repeated request thus follows
// the evaluations as they are now.
func (a *applier) loadResult(first state.IdempotencyRecord) *replication.Result {
	r, err := codec.DecodeResult(first.Result)
	if err != nil {
		panic("replication: decode a stored result: " + err.Error()) // EncodeResult wrote it
	}
	r.Index, r.Replayed = first.Index, true
	r.ModifyIndex = cmp.Or(r.ModifyIndex, first.Index)
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
