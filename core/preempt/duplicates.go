package preempt

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// solveDuplicates gives every duplicate of the call the answer of its leader. A
// duplicate costs a copy of the answer instead of a part of a call.
func (w *worker) solveDuplicates() {
	s, m := w.s, &w.solutions
	for i := range w.dedup.Duplicates {
		d := &w.dedup.Duplicates[i]
		leader := &w.batch.Entries[d.Leader]
		s.outcomes[d.Slot] = s.outcomes[leader.Slot]
		if !s.options[leader.Option].feasible {
			continue
		}
		from := len(m.victims)
		for _, x := range w.keptRows[leader.KeptFrom : leader.KeptFrom+leader.KeptCount] {
			m.victims = append(m.victims, w.dedup.Candidate(d, x))
		}
		m.solveDuplicate(s, d, leader, m.victims[from:len(m.victims):len(m.victims)])
		opt := &s.options[d.Option]
		opt.fillCosts(s, &w.verify.charged)
		opt.relocate(s, &w.relocations, &d.Entry)
	}
}

// solveDuplicate assigns a duplicate the same solution as its leader, with victims of
// its own. Costs depend on more than the compared properties, and are computed anew.
func (m *solutionStore) solveDuplicate(s *search, d *prune.Duplicate, leader *columns.Entry, victims []*state.Row) {
	opt, from := &s.options[d.Option], &s.options[leader.Option]
	m.assign(opt, d.Rows)
	opt.victims, opt.need = victims, from.need
	opt.considered, opt.candidates, opt.duplicate = from.considered, from.candidates, true
	opt.fitBefore, opt.fitAfter = from.fitBefore, from.fitAfter
	if s.traits.optionColumns.Has(sdk.FitColumns) && !offersSame(&d.Node, &leader.Node) {
		opt.fitBefore, opt.fitAfter = s.scoreNode(&d.Node, victims)
	}
}

// offersSame reports whether two nodes with the same free capacity are of the same size.
func offersSame(a, b *fit.Node) bool {
	return a.Offer(model.CPU) == b.Offer(model.CPU) && a.Offer(model.Memory) == b.Offer(model.Memory)
}

// scoreNode ranks a node with the group placed, before and after victims leave. Both
// scores include the group, so that their difference is that of the victims.
func (s *search) scoreNode(n *fit.Node, victims []*state.Row) (before, after float64) {
	ask := &s.req.Group.Ask.Vec
	cpu, memory := n.Free(model.CPU)-ask[model.CPU], n.Free(model.Memory)-ask[model.Memory]
	rank := func() float64 {
		return fit.Score(s.req.Algorithm, n.Offer(model.CPU), n.Offer(model.Memory), cpu, memory)
	}
	before = rank()
	for _, row := range victims {
		cpu, memory = cpu+row.Group.Ask.Vec[model.CPU], memory+row.Group.Ask.Vec[model.Memory]
	}
	return before, rank()
}
