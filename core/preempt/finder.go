package preempt

import (
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
)

// A Finder searches options for one group after another. Its buffers are reused between
// searches. The zero value is ready for use.
//
// Start starts a search for a group; Release must follow it. Best may be called again
// after the scheduler has placed an instance and has reported the changed nodes with
// Update. Options on other nodes keep their victims: with the same version, preemptor,
// time and rows a policy gives the same answer.
type Finder struct {
	search  search
	workers []*worker
	chooser hook // scores options

	// Which nodes are evaluated.
	index   prune.NodeIndex
	classes prune.NodeClasses
	plan    nodePlan
	rounds  rounds

	// For Update, to find affected nodes.
	groups   prune.GroupIndex
	affected []int32

	// Results besides those of search.
	table    optionTable
	chosen   []*model.Allocation // Choice.Victims
	findings protect.Findings
	err      error
}

// Start starts a search on a snapshot. It returns an error if a policy instance cannot
// be acquired, or if a policy fails or breaks a rule.
func (f *Finder) Start(snap *state.Snapshot, req Request) error {
	s := &f.search
	s.start(snap, req)
	f.findings, f.err = protect.Findings{}, nil
	f.index.Reset(req.Nodes)
	f.groups.Reset(len(req.Nodes))
	var err error
	if f.chooser, err = acquireHook(s.traits.chooser, req.OnCall); err != nil {
		return err
	}
	if err := f.startWorkers(1); err != nil {
		return err
	}
	f.planNodes()
	f.markInfeasible()
	if err := f.startWorkers(max(1, min(req.Workers, len(f.plan.distinct)/blockNodes))); err != nil {
		return err
	}
	f.searchAll()
	return f.err
}

// startWorkers starts workers until n of them are active.
func (f *Finder) startWorkers(n int) error {
	for len(f.workers) < n {
		f.workers = append(f.workers, &worker{idle: true})
	}
	for _, w := range f.workers[:n] {
		if !w.idle {
			continue
		}
		if err := w.start(&f.search); err != nil {
			return err
		}
	}
	return nil
}

// active returns the workers of this search: those before the first idle one.
func (f *Finder) active() []*worker {
	for i, w := range f.workers {
		if w.idle {
			return f.workers[:i]
		}
	}
	return f.workers
}

// searchAll evaluates every node, or as many as the best option requires. The result
// does not depend on the number of workers.
func (f *Finder) searchAll() {
	f.rounds.waiting = f.rounds.waiting[:0]
	if f.usesRounds() {
		f.searchInRounds()
		return
	}
	f.evaluate(append(f.plan.evaluating[:0], f.plan.distinct...))
	if f.search.traits.relocates && len(f.plan.distinct) < len(f.plan.leader) {
		if except := f.search.exceptions(&f.index); len(except) > 0 {
			f.evaluate(f.plan.replaceExceptions(except))
		}
	}
	f.plan.copyResults(&f.search)
}

// evaluate evaluates the nodes at some slots, ascending, and collects the
// findings of workers. Workers process blocks in turn.
func (f *Finder) evaluate(slots []int32) {
	f.plan.evaluating = slots
	eachWorker(f.active(), work{slots: slots}, (*worker).evaluateBlocks)
	f.collect()
}

// work is a list of nodes that workers divide among themselves.
type work struct {
	slots  []int32
	bounds []prune.Bound // by position in slots; results of boundBlocks and boundBlocksByTier
	limit  *prune.Limit  // for boundBlocksByTier; nil: there is none
}

// eachWorker makes every worker run its share of some work, every step-th block
// beginning with first, and waits for all of them. share is a method of worker: a
// closure would be allocated in every search. The first worker runs on the caller's
// goroutine.
func eachWorker(workers []*worker, all work, share func(w *worker, all work, first, step int)) {
	if len(workers) == 1 {
		share(workers[0], all, 0, 1)
		return
	}
	var wg sync.WaitGroup
	for i, w := range workers[1:] {
		wg.Go(func() { share(w, all, i+1, len(workers)) })
	}
	share(workers[0], all, 0, len(workers))
	wg.Wait()
}

// collect merges the findings of workers. Of several errors it keeps the one
// in the first block, so that the result does not depend on timing.
func (f *Finder) collect() {
	block := -1
	for _, w := range f.active() {
		f.findings.Merge(&w.guard.Findings)
		if w.failure.err != nil && (block < 0 || w.failure.at < block) {
			f.err, block = w.failure.err, w.failure.at
		}
	}
}

// Release returns the policy instances and drops references into the snapshot. It must
// follow every Start, even one that failed.
func (f *Finder) Release() {
	f.chooser.release()
	for _, w := range f.workers {
		w.release()
	}
	f.search.scope.Snap, f.search.scope.Committed = nil, nil
	f.search.relocations.Release()
	f.index.Release()
}

// Outcomes returns the outcome of each node of the request, and the nodes. Both are valid
// until the next search.
func (f *Finder) Outcomes() ([]Outcome, []int32) { return f.search.outcomes, f.search.req.Nodes }

// NonFinal reports whether something other than the nodes' capacity and time prevented
// an eviction: a strict budget, or an allocation on another node.
func (f *Finder) NonFinal() bool { return f.findings.NonFinal }

// BlockingBudget returns the strict budget that kept a candidate on the node at position
// k of the request's nodes, or nil if none did.
func (f *Finder) BlockingBudget(k int) *model.Budget {
	scope := &f.search.scope
	if len(scope.Blocking) == 0 || scope.Blocking[k] == 0 {
		return nil
	}
	return scope.Snap.Budgets()[scope.Blocking[k]-1]
}

// RecheckAt returns the earliest time at which a policy requests another search, in Unix
// nanoseconds; 0 if none does.
func (f *Finder) RecheckAt() int64 { return f.findings.Recheck.Time() }
