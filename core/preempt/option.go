package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// option is a node, and a way of serving the group's device requests there.
//
// Invariant: an option is feasible exactly if the group fits once the victims of its
// solution have left.
type option struct {
	pos      int32 // of the node
	device   int16 // position in the node's DeviceChoices
	feasible bool
	*solution
}

// solution holds the victims of a feasible option, and their cost. Options on nodes
// of one class share a solution.
type solution struct {
	evaluatedAt int32 // position of the node for which the policy was called
	shared      bool  // other options refer to it, so that it must not be overwritten
	rows        []state.Row
	victims     []*state.Row // of rows, and perhaps of other nodes, in picking order

	highest     int32 // priority
	violations  int32 // of budgets; only if the chooser reads them, like start
	start       int64 // when the first victim of the highest priority started
	prioritySum int64
	lostWork    int64
	fitBefore   float64
	fitAfter    float64
	// considered are verdicts about the candidates, of which there are more if they are
	// many; only if the request has Explain. duplicate is set if they are those of the
	// option whose answer this one shares.
	considered []considered
	candidates int32
	duplicate  bool
	// need is the deficit before any victim left, by dimension; only if the chooser
	// reads it.
	need []float64
	// relocations are where the victims could run, in their order; only if the chooser
	// reads them.
	relocations []relocate.Answer
}

// costKey returns the key of an option for a policy with LeastFirst.
func (o *option) costKey() prune.Key {
	cost := prune.CostOf(o.violations, o.highest, o.prioritySum, int32(len(o.victims)), o.start)
	return cost.Key()
}

// fillCosts computes the costs of the solution's victims that the chooser reads, except for
// where they could run.
func (o *solution) fillCosts(s *search, charged *protect.Charges) {
	o.highest, o.prioritySum, o.lostWork, o.violations = math.MinInt32, 0, 0, 0
	for _, row := range o.victims {
		o.highest = max(o.highest, row.Priority)
		o.prioritySum += int64(row.Priority)
	}
	read := s.traits.optionColumns
	if read.Has(sdk.LostWorkColumn) {
		for _, row := range o.victims {
			o.lostWork += row.Group.LostWork(row.Alloc.Age(s.req.Now))
		}
	}
	if read.Has(sdk.BudgetColumns) {
		o.violations = s.scope.Budgets.Violations(o.victims, charged)
	}
	if read.Has(sdk.StartColumn) {
		o.start = math.MaxInt64
		for _, row := range o.victims {
			if row.Priority == o.highest {
				o.start = min(o.start, s.req.Now, row.Start)
			}
		}
	}
}

// relocate stores where the victims could run, if the chooser reads it. e is the entry of the
// option.
func (o *solution) relocate(s *search, view *relocate.View, e *columns.Entry) {
	o.relocations = o.relocations[:0]
	if !s.traits.optionColumns.Has(sdk.RelocationColumns) {
		return
	}
	for _, row := range o.victims {
		o.relocations = append(o.relocations, view.OfNode(row, e.Home(row)))
	}
}

// appendVictims appends the victims of an option. The solution may be that of another
// node of the same class: then the victims are the rows at the same positions.
func (o *option) appendVictims(victims []*model.Allocation, snap *state.Snapshot) []*model.Allocation {
	if o.pos == o.evaluatedAt {
		for _, v := range o.victims {
			victims = append(victims, v.Alloc)
		}
		return victims
	}
	node := fit.At(snap, o.pos)
	for _, v := range o.victims {
		at := slices.IndexFunc(o.rows, func(row state.Row) bool { return row.Alloc == v.Alloc })
		victims = append(victims, node.Rows[at].Alloc)
	}
	return victims
}

// solutionStore is the memory of a worker's solutions. It is reused from search to
// search, and blocks never move, so that options can point into them.
type solutionStore struct {
	blocks  []*[solutionBlock]solution
	used    int
	victims []*state.Row // of all solutions
	needs   []float64    // of all solutions

	considered []considered // of all solutions
}

const solutionBlock = 64

// reset makes the memory available again.
func (m *solutionStore) reset() {
	m.used, m.victims, m.needs, m.considered = 0, m.victims[:0], m.needs[:0], m.considered[:0]
}

// assign makes an option feasible, with a solution of its own that is still to be filled.
func (m *solutionStore) assign(o *option, rows []state.Row) {
	if o.solution == nil || o.shared {
		block := m.used / solutionBlock
		if block == len(m.blocks) {
			m.blocks = append(m.blocks, new([solutionBlock]solution))
		}
		o.solution = &m.blocks[block][m.used%solutionBlock]
		m.used++
	}
	o.feasible, o.evaluatedAt, o.shared, o.rows = true, o.pos, false, rows
}
