package preempt

import (
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
)

// blockNodes is the number of nodes that share calls to a policy. Calls never cross the
// border of a block, so that the input of a policy does not depend on the number
// of workers.
const blockNodes = 512

// worker evaluates nodes: it collects candidates, lays options out in calls, calls the
// policy, and verifies the answers. All of its buffers are reused between searches. One
// goroutine uses it at a time; the results that it writes are those of its own blocks.
type worker struct {
	s    *search
	idle bool

	delta   hook // unset if the base gap holds for every candidate
	victims hook
	guard   protect.Guard
	// relocations answers where candidates could run. Its parts are blocks.
	relocations relocate.View

	candidates candidateSet // of the node at hand
	deficit    []int64      // of the node at hand, by tracked dimension
	left       []int64      // scratch: its remainder while rows are released

	lower     columns.Batch // candidates of lower priority, for PriorityDelta
	batch     columns.Batch // options, for the hooks that select victims
	dedup     prune.OptionDedup
	keptRows  []int32         // victims of the call's options, as positions among their candidates
	retries   []columns.Entry // options about which the policy is to be called again
	answers   answers
	verify    verifier
	solutions solutionStore
	bounder   bounder

	failure failure
}

// failure is the first error of a worker.
type failure struct {
	block int // at hand
	err   error
	at    int // block of err
}

// start acquires policy instances for a search. If it returns an error, the caller
// releases what was acquired.
func (w *worker) start(s *search) (err error) {
	w.s, w.idle, w.failure = s, false, failure{}
	w.guard.Start(&s.scope)
	w.verify.s, w.verify.guard, w.verify.batch = s, &w.guard, &w.batch
	s.startView(&w.relocations)
	w.batch.Relocations, w.lower.Relocations, w.dedup.Relocations = &w.relocations, &w.relocations, &w.relocations
	w.solutions.reset()
	if w.delta = (hook{}); s.traits.delta != nil {
		if w.delta, err = acquireHook(s.traits.delta, s.req.OnCall); err != nil {
			return err
		}
	}
	if w.victims, err = acquireHook(s.traits.victims, s.req.OnCall); err != nil {
		return err
	}
	w.renew()
	return nil
}

// renew empties the calls under construction, and recomputes shared tables.
func (w *worker) renew() {
	t := &w.s.traits
	w.guard.Reset()
	w.batch.Start(&w.s.inputs, t.columns)
	w.dedup.Start(t.columns)
	if t.delta != nil {
		w.lower.Start(&w.s.inputs, t.delta.Columns(policy.HookDelta))
	}
}

// refreshShared recomputes shared tables.
func (w *worker) refreshShared() {
	w.batch.RefreshShared(&w.s.inputs)
	if w.s.traits.delta != nil {
		w.lower.RefreshShared(&w.s.inputs)
	}
}

// release returns the policy instances.
func (w *worker) release() {
	w.guard.Reset()
	w.relocations.Release()
	w.victims.release()
	w.bounder.chooser.release()
	w.delta.release()
	w.idle = true
}

// evaluateBlocks evaluates every step-th block of nodes, beginning with first. Workers
// take every step-th block, so that their shares do not depend on timing.
func (w *worker) evaluateBlocks(all work, first, step int) {
	slots := all.slots
	for block := first; block*blockNodes < len(slots) && w.failure.err == nil; block += step {
		w.failure.block = block
		w.relocations.Reset()
		for _, slot := range slots[block*blockNodes : min((block+1)*blockNodes, len(slots))] {
			w.evaluate(slot)
		}
		w.finish()
	}
}

// fail records an error unless there is an earlier one. It reports whether err is one.
// The block is recorded as well: of several workers, the error of the first block
// counts, as with one worker.
func (w *worker) fail(err error) bool {
	if err != nil && w.failure.err == nil {
		w.failure.err, w.failure.at = err, w.failure.block
	}
	return err != nil
}
