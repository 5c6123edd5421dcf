package gang

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
)

// If strict budgets affect several instances of a gang, the victims of one instance
// limit those of the next: two allocations that share a budget with one
// disruption left cannot both be evicted, although each may be its node's best
// victim. So if the best victims lead to no solution, others are tried, by
// excluding one more allocation under a strict budget at a time. Every set of
// victims that uses other budgets is reached that way.

// tryOtherVictims places an instance on the nodes of options with other victims, and
// on nodes on which strict budgets protected the chosen ones.
func (s *search) tryOtherVictims(at int, options []option, protected []int32) (found bool, err error) {
	if s.e.State.Base.StrictBudgetCount() == 0 {
		return false, nil
	}
	var nodes []int32
	tried := map[string]bool{}
	for i := range options {
		c := &options[i].choice
		if len(c.Victims) == 0 {
			continue
		}
		tried[choiceKey(c)] = true
		if !slices.Contains(nodes, c.Pos) {
			nodes = append(nodes, c.Pos)
		}
	}
	for _, pos := range append(nodes, protected...) {
		others, err := s.otherVictims(&s.wanted[at], pos)
		if err != nil {
			return false, err
		}
		others = slices.DeleteFunc(others, func(o option) bool { return tried[choiceKey(&o.choice)] })
		if found, err = s.try(at, others); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// otherVictims returns options on a node with different victims. Each exclusion set
// adds a victim of an option found so far, or if budgets protect the victims there,
// any allocation of the node.
func (s *search) otherVictims(w *wanted, pos int32) (list []option, err error) {
	e := s.e
	before := e.State.Snapshot()
	defer e.State.Restore(before)
	p := s.newPlacer(w)
	defer p.Close()
	known, seen := map[string]bool{}, map[string]bool{}
	// Breadth first, so that sets with few exclusions come before larger ones.
	sets := []placement.Exclusions{nil}
	for next := 0; next < len(sets); next++ {
		if next == maxVictimTries || s.visits >= maxNodeVisits {
			s.cut = true
			break
		}
		s.visits++
		found, err := p.EvictionOptions([]int32{pos}, sets[next])
		if err != nil {
			return nil, err
		}
		var candidates []*model.Allocation
		if len(p.ProtectedNodes()) > 0 {
			snap := e.State.Snapshot()
			candidates = snap.AppendNodeAllocs(nil, snap.NodeAt(pos).ID)
		}
		for _, c := range found {
			candidates = append(candidates, c.Victims...)
			if key := placement.AllocsKey(c.Victims); !known[key] {
				known[key] = true
				list = append(list, option{c, e.State.Snapshot()})
			}
		}
		for _, larger := range placement.ExtendExclusions(e.State.Base, sets[next], candidates) {
			if key := placement.AllocsKey(slices.Collect(maps.Keys(larger))); !seen[key] {
				seen[key] = true
				sets = append(sets, larger)
			}
		}
	}
	return list, nil
}

// choiceKey identifies a choice by node and victims. Victims alone do not suffice,
// since allocations of one node may be evicted for another one.
func choiceKey(c *preempt.Choice) string {
	return fmt.Sprint(c.Pos, "\x00", placement.AllocsKey(c.Victims))
}
