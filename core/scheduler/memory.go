package scheduler

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

type stateSnapshot = state.Snapshot

// memory knows which groups found no place anywhere, and when. Whether a node
// can take a group depends on that node alone as long as no rule looks at other
// nodes, so the next evaluation looks only at nodes whose room has changed since.
// Without it a full cluster is scanned whole for every job that waits, again and
// again. It is kept by the shape of groups, so that what was learnt for one job
// serves all that are like it.
type memory struct {
	failed map[string]failure
}

// failure is what is known of a group that found no place.
type failure struct {
	index    uint64 // of the snapshot that was searched
	config   uint64 // modify index of the scheduler configuration
	version  *policy.Version
	preempts bool
	why      *model.Explanation
	classes  map[uint64]bool
	escaped  bool
}

// remembered bounds the memory; beyond it everything is forgotten at once,
// which costs one full scan for each group that still waits.
const remembered = 1 << 16

func newMemory() memory { return memory{failed: map[string]failure{}} }

// recall finds the index up to which the group is known to fit nowhere.
func (p *placer) recall() {
	f, ok := p.run.s.memory.failed[p.group.Shape()]
	if !ok || !p.memorable() || f.index > p.run.base.Index() || f.version != p.run.version ||
		f.preempts != p.run.preempts || f.config != p.run.base.Config().ModifyIndex {
		return
	}
	p.since, p.known = f.index, f.why
	p.run.couldUnblock(f.classes, f.escaped)
}

// memorable is whether a failure of the group depends on each node alone, and
// not on time.
func (p *placer) memorable() bool {
	return !p.run.s.config.Forget && !p.run.version.Info().Columns.Has(sdk.TimeColumns) &&
		p.run.version.Hooks()&policy.HookDelta == 0 && !p.rules.global() && !p.run.claimed()
}

// claimed is whether any claim is there: claims expire by time alone.
func (r *run) claimed() bool {
	for range r.base.Claims() {
		return true
	}
	return false
}

// remember keeps or forgets the group's failure. It holds for the state that the
// plan leaves: nodes that the plan touches will have changed since the snapshot,
// and when the plan is not committed whole, Rejected forgets the failure. A gang that fails
// leaves no plan: what its earlier groups took is no reason to remember.
func (p *placer) remember(failed bool) {
	if !p.memorable() {
		return
	}
	m := &p.run.s.memory
	if !failed || p.recheckAt() != 0 || p.run.job.AllAtOnce && p.run.proposed != p.run.base {
		delete(m.failed, p.group.Shape())
		return
	}
	if len(m.failed) >= remembered {
		clear(m.failed)
	}
	m.failed[p.group.Shape()] = failure{
		index: p.run.base.Index(), config: p.run.base.Config().ModifyIndex,
		version: p.run.version, preempts: p.run.preempts, why: p.explain(),
		classes: p.feasible.classes(p.run.base), escaped: p.escapes(),
	}
}

// Rejected tells the scheduler that a plan for the job was not committed whole:
// what it knew of the job's groups stood on it.
func (s *Scheduler) Rejected(job *model.Job) {
	for _, g := range job.Groups {
		delete(s.memory.failed, g.Shape())
	}
}
