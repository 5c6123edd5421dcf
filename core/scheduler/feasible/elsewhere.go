package feasible

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

var _ relocate.Places = (*Elsewhere)(nil)

// Elsewhere checks nodes for the running allocations of any job in the proposed state, by
// the same rules as for new instances. Searches for victims use it to find where victims
// could run instead. Its memory is reused from one evaluation to the next.
type Elsewhere struct {
	state   *proposal.State
	checker NodeChecker
	pool    CounterPool
	rules   *Rules // nil: none that excludes a node
	allocs  []*model.Allocation
	byGroup [][]*model.Allocation
}

// Begin selects the state of an evaluation.
func (e *Elsewhere) Begin(s *proposal.State) { e.state, e.rules = s, nil }

// Prepare is part of relocate.Places. If rules read where other allocations are, it costs a
// pass over those of the job.
func (e *Elsewhere) Prepare(a *model.Allocation) {
	g := a.Group
	e.checker.Reset(g, e.state.Base.ClassCount())
	e.pool.Reclaim()
	x := NewContext(e.state, nil, &proposal.Preemption{}, &e.pool)
	if e.rules = NewRules(x, g); e.rules == nil || e.rules.RanksOnly() {
		e.rules = nil
		return
	}
	e.allocs = e.state.Snapshot().AppendJobAllocs(e.allocs[:0], g.Job.Key())
	e.byGroup = GroupAllocs(e.byGroup, g.Job, e.allocs)
	x.Allocs = e.byGroup
	e.rules.Prepare()
	e.rules.Count(a, -1)
	x.Count(a, -1)
}

// Feasible is part of relocate.Places.
func (e *Elsewhere) Feasible(chunk *state.Chunk, i int) bool { return e.checker.Feasible(chunk, i) }

// IsSlow is part of relocate.Places.
func (e *Elsewhere) IsSlow() bool { return e.checker.Escapes() }

// Allows is part of relocate.Places.
func (e *Elsewhere) Allows(pos int32) bool {
	return e.rules == nil || e.rules.Check(pos, e.state.Snapshot().NodeAt(pos)) == Allowed
}
