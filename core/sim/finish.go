package sim

import (
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// finish returns the result of a completed run.
func (e *engine) finish() *Run {
	end := e.now()
	if e.file.Until != nil {
		end = max(end, *e.file.Until)
	}
	for _, v := range e.policies.Versions() {
		calls, faults := v.Stats()
		e.record.collector.PolicyCalls(int(calls))
		e.record.collector.PolicyFaults(int(faults))
	}
	m := e.record.collector.Finish(end)
	snap := e.store.Snapshot()
	unbound := e.jobs.unbound(snap)
	if len(e.file.Bindings) > 0 {
		e.bound.countReplicas(m, unbound, e.record.evicted)
	}
	return &Run{
		Metrics: m, Series: e.record.collector.Series(), Faults: e.faults, Warnings: e.file.Warnings,
		Result: &Result{
			Version: 1, Scenario: e.file.Name, Policy: e.policyName(), PolicyVersion: e.version.ID,
			Seed: e.file.Seed, Placements: e.record.placements, Bindings: e.bound.list,
			Unplaced: append(e.jobs.unplaced(snap), unbound...), Evicted: e.record.evicted, Decisions: e.record.decisions, Observed: e.record.observed, Moved: e.record.moved, Running: e.running(), Metrics: m,
		},
	}
}

// countReplicas counts the replicas of bindings by outcome.
func (b *bindings) countReplicas(m *metrics.Metrics, unbound []Unplaced, victims []Evicted) {
	bound, waiting, evicted := 0, 0, 0
	for i := range b.list {
		for _, n := range b.list[i].Clusters {
			bound += n
		}
	}
	for i := range unbound {
		waiting += unbound[i].Count
	}
	for i := range victims {
		evicted += victims[i].Replicas
	}
	m.BoundReplicas, m.UnboundReplicas, m.EvictedReplicas = &bound, &waiting, &evicted
}

// running lists the allocations that run at the end, ascending by ID.
func (e *engine) running() []string {
	ids := []string{}
	for a := range e.store.Snapshot().Allocs() {
		if a.Live() {
			ids = append(ids, a.ID)
		}
	}
	ids = append(ids, e.bound.running(e.store.Snapshot())...)
	slices.Sort(ids)
	return ids
}

// sweep deletes evaluations that have ended, because a long run creates a large
// number of them.
func (e *engine) sweep() {
	if len(e.finished) < sweepAt {
		return
	}
	txn := e.begin()
	txn.EvalWriter().Delete(e.finished...)
	txn.Commit()
	e.finished = e.finished[:0]
}

// sweepAt is the number of ended evaluations at which they are deleted.
const sweepAt = 4096

// progress reports the progress of the run to the caller.
func (e *engine) progress() {
	if e.opts.Progress == nil {
		return
	}
	p := Progress{
		Now: time.Duration(e.now()), Steps: e.next, StepsTotal: len(e.file.Steps),
		Placed: len(e.record.placements),
	}
	if e.file.Until != nil {
		p.Until = time.Duration(*e.file.Until)
	}
	e.opts.Progress(p)
}
