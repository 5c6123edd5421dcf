package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Nodes of one class share a solution, and their allocations mostly could run in the same
// places. The exceptions are the nodes that are the only place, or the best one, for their
// own allocations.

// replaceExceptions makes the exceptions among the nodes that share the result of another
// one their own leaders, and returns their slots, ascending. If a leader is an exception
// itself, another node takes its place. Both kinds are few.
func (p *nodePlan) replaceExceptions(except []int32) (slots []int32) {
	slots = p.evaluating[:0]
	replaced := map[int32]int32{} // by slot of an exception: the slot that takes its place
	for k := range p.leader {
		slot, leader := int32(k), p.leader[k]
		if slot == leader {
			continue
		}
		if _, isException := slices.BinarySearch(except, slot); !isException {
			if _, isReplaced := slices.BinarySearch(except, leader); !isReplaced {
				continue
			}
			if other, ok := replaced[leader]; ok {
				p.leader[slot] = other
				continue
			}
			replaced[leader] = slot
		}
		p.leader[slot] = slot
		slots = append(slots, slot)
	}
	return slots
}

// exceptions returns the slots of the exceptions, ascending.
func (s *search) exceptions(index *prune.NodeIndex) []int32 {
	return s.slotsOf(index, s.relocations.AppendExceptions(nil))
}

// slotsOf returns the slots of the nodes at some positions, ascending.
func (s *search) slotsOf(index *prune.NodeIndex, positions []int32) (slots []int32) {
	for _, pos := range positions {
		if slot, ok := index.Slot(s.scope.Snap, pos); ok {
			slots = append(slots, slot)
		}
	}
	slices.Sort(slots)
	return slices.Compact(slots)
}

// updateRelocations brings the answers up to date with the snapshot of the scope. It returns
// the slots of nodes with other answers about their allocations, and reports whether those
// of all nodes may have changed.
func (s *search) updateRelocations(index *prune.NodeIndex, positions []int32) (slots []int32, everywhere bool) {
	changed, everywhere := s.relocations.Update(s.scope.Snap, positions, nil)
	changed = slices.DeleteFunc(changed, func(pos int32) bool { return slices.Contains(positions, pos) })
	return s.slotsOf(index, changed), everywhere
}

// fillRelocation sums up where the victims of every option could run.
func (t *optionTable) fillRelocation(s *search) {
	o, n := &t.options, len(t.at)
	o.Stranded, o.Displacing = scratch.Zeroed(o.Stranded, n), scratch.Zeroed(o.Displacing, n)
	o.DisplacedPriority, o.DisplacedLostWork = scratch.Sized(o.DisplacedPriority, n), scratch.Zeroed(o.DisplacedLostWork, n)
	for i, at := range t.at {
		o.DisplacedPriority[i] = math.MinInt32
		for _, a := range s.options[at].relocations {
			switch a.Where {
			case sdk.RelocationNone:
				o.Stranded[i]++
			case sdk.RelocationEvicts:
				o.Displacing[i]++
				o.DisplacedPriority[i] = max(o.DisplacedPriority[i], a.Priority)
				o.DisplacedLostWork[i] += a.LostWork
			}
		}
	}
}

// fillVictimRelocation fills where each victim could run. Without answers, as in
// comparisons, it is elsewhere at once, which costs least.
func (t *optionTable) fillVictimRelocation(s *search) {
	for _, at := range t.at {
		opt := &s.options[at]
		for k := range opt.victims {
			a := relocate.Answer{Where: sdk.RelocationFree, Priority: math.MinInt32}
			if len(opt.relocations) > 0 {
				a = opt.relocations[k]
			}
			columns.AppendRelocation(&t.options.Victims, a)
		}
	}
}
