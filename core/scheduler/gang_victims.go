package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
)

// Where strict budgets bind several instances of a gang, whom an instance evicts
// decides what is left for the next: two who share a budget that has one eviction left
// are not to be evicted both, though each node's best victim is one of them. So where a
// search has found no places that go together, it tries others in the stead of victims
// that are under strict budgets, one spared after another: every set that takes other
// budgets' evictions comes up that way.

// maxVictimSets is how many sets of those to be spared are tried for one instance on a
// node.
const maxVictimSets = 256

// tryOtherVictims places an instance on the nodes of options, over others than theirs,
// and on those where the victims that were chosen are kept by strict budgets.
func (s *gangSearch) tryOtherVictims(at int, options []gangOption, kept []int32) (found bool, err error) {
	if s.run.base.StrictBudgetCount() == 0 {
		return false, nil
	}
	var nodes []int32
	first := map[string]bool{}
	for _, o := range options {
		if len(o.choice.Victims) == 0 {
			continue
		}
		first[overWhom(&o)] = true
		if !slices.Contains(nodes, o.choice.Pos) {
			nodes = append(nodes, o.choice.Pos)
		}
	}
	for _, pos := range append(nodes, kept...) {
		others, err := s.otherVictims(&s.wanted[at], pos)
		if err != nil {
			return false, err
		}
		others = slices.DeleteFunc(others, func(o gangOption) bool { return first[overWhom(&o)] })
		if found, err = s.try(at, others); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// sparedSet is some allocations that are no candidates.
type sparedSet map[*model.Allocation]bool

// otherVictims lists options on a node with different victims. Each begins with whom an
// option found so far evicts, one of whom is spared; where there is no option, with
// somebody who is there.
func (s *gangSearch) otherVictims(w *gangWant, pos int32) (list []gangOption, err error) {
	r := s.run
	r.separations, r.stopped = nil, true
	r.s.tallies.reclaim()
	before := r.proposed
	defer func() { r.proposed = before }()
	p := s.placer(w)
	defer p.close()
	known, seen := map[string]bool{}, map[string]bool{}
	sets := []sparedSet{nil}
	for next := 0; next < len(sets); next++ {
		if next == maxVictimSets || s.looks >= maxGangLooks {
			s.cut = true
			break
		}
		s.looks++
		p.close()
		p.spared = sets[next]
		found, err := p.evicting([]int32{pos})
		if err != nil {
			return nil, err
		}
		concerned := []*model.Allocation(nil)
		if len(p.protected()) > 0 {
			concerned = r.proposed.AppendNodeAllocs(nil, r.proposed.NodeAt(pos).ID)
		}
		for _, o := range found {
			concerned = append(concerned, o.choice.Victims...)
			if name := namesOf(o.choice.Victims); !known[name] {
				known[name], o.left = true, r.proposed
				list = append(list, o)
			}
		}
		for _, more := range r.sparing(p.spared, concerned) {
			if name := namesOf(slices.Collect(maps.Keys(more))); !seen[name] {
				seen[name] = true
				sets = append(sets, more)
			}
		}
	}
	return list, nil
}

// protected is the nodes of the search at hand where strict budgets keep who would have
// to go.
func (p *placer) protected() (list []int32) {
	outcomes, nodes := p.outcomes()
	for k, outcome := range outcomes {
		if outcome == preempt.Protected {
			list = append(list, nodes[k])
		}
	}
	return list
}

// sparing lists whom to spare beside others: of some each that is under a strict budget,
// or that does not go alone, as somebody else may be.
func (r *run) sparing(also sparedSet, some []*model.Allocation) (list []sparedSet) {
	budgets := r.base.Budgets()
	for _, a := range some {
		strict := a.Job.AllOrNone || slices.ContainsFunc(r.base.GroupBudgets(a.Group), func(at int32) bool { return budgets[at].Strict })
		if strict && a.Live() && !also[a] {
			more := sparedSet{a: true}
			maps.Copy(more, also)
			list = append(list, more)
		}
	}
	return list
}

// overWhom names an option's node and victims: those of one node may also be evicted
// for another.
func overWhom(o *gangOption) string {
	return fmt.Sprint(o.choice.Pos, "\x00", namesOf(o.choice.Victims))
}

func namesOf(victims []*model.Allocation) string {
	ids := make([]string, len(victims))
	for i, v := range victims {
		ids[i] = v.ID
	}
	slices.Sort(ids)
	return strings.Join(ids, "\x00")
}
