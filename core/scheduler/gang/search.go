package gang

import (
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// Bounds of a search: about a tenth of a second on a large cluster. A step ranks
// all nodes for one instance.
const (
	maxSteps       = 1024
	maxStepsWithin = 128 // of the search of one choice of domains
	maxNodeVisits  = 1 << 18
	maxVictimTries = 256 // exclusion sets per instance and node
)

// A search places the instances of a gang one after another, each on its options in
// the order of preference, and backtracks if one has none left. It finds a solution
// if there is one, unless it reaches a bound. States that are reached by several
// orders of placements are examined once.
type search struct {
	e       *placement.Evaluation
	earlier []*model.Allocation // victims before the search
	wanted  []wanted
	path    []step
	dead    map[string]bool // keys of states without a solution

	steps, visits       int
	maxSteps, maxVisits int
	cut                 bool // a bound was reached
}

// wanted is an instance to be placed.
type wanted struct {
	group   *model.Group
	missing reconcile.Missing
	since   int64 // when the group's longest-waiting instance became missing
	nodes   int   // that a step visits
}

// A step is an instance that was placed.
type step struct {
	option option
	alloc  *model.Allocation
	before *state.Snapshot
}

// An option is a way to place an instance.
type option struct {
	choice preempt.Choice
	base   *state.Snapshot // state without the allocation that the instance replaces
}

// explain adds the best options of other nodes to the explanation of one of some options,
// which are in the order of preference. The chosen option need not be the first: an
// earlier one may have left too little for the instances that follow. Options without
// victims have no explanation, and would have been chosen if they led to a solution.
func explain(chosen *option, among []option) {
	why := chosen.choice.Why
	if why == nil {
		return
	}
	for i := range among {
		other := among[i].choice.Why
		if other == nil || len(why.Ranked) == model.MaxRanked {
			continue
		}
		if r := other.Ranked[0]; !slices.ContainsFunc(why.Ranked, func(x model.RankedOption) bool { return x.NodeID == r.NodeID }) {
			why.Ranked = append(why.Ranked, r)
		}
	}
}

func newSearch(g *gang) *search {
	s := &search{e: g.e, earlier: g.start.victims, dead: map[string]bool{}, maxSteps: maxSteps, maxVisits: maxNodeVisits}
	for _, group := range g.order {
		since, nodes := g.waitingSince(group), g.e.State.Base.NodeCount()
		for _, m := range g.missing[group.Position] {
			s.wanted = append(s.wanted, wanted{group, m, since, nodes})
		}
	}
	return s
}

// waitingSince returns since when the longest-waiting instance of a group is missing. It is
// one time per group, as in PlaceGroup, so that both find the same victims.
func (g *gang) waitingSince(group *model.Group) (since int64) {
	for k, m := range g.missing[group.Position] {
		if k == 0 || m.Since < since {
			since = m.Since
		}
	}
	return since
}

// find places the instances from position at on and reports whether it could.
func (s *search) find(at int) (found bool, err error) {
	if at == len(s.wanted) {
		return true, nil
	}
	key := s.pathKey()
	if s.dead[key] || !s.spend(s.wanted[at].nodes) {
		return false, nil
	}
	options, protected, err := s.options(&s.wanted[at])
	if err != nil {
		return false, err
	}
	if found, err = s.try(at, options); found || err != nil {
		return found, err
	}
	// Other victims on the same nodes are tried last: they are worse by the policy.
	if found, err = s.tryOtherVictims(at, options, protected); found || err != nil {
		return found, err
	}
	s.dead[key] = true // also if a bound was reached: the search then ends
	return false, nil
}

// try places an instance by one option after another, and those that follow it.
func (s *search) try(at int, options []option) (found bool, err error) {
	for i := range options {
		s.push(&s.wanted[at], options[i])
		if found, err = s.find(at + 1); found || err != nil {
			if found {
				explain(&options[i], options)
			}
			return found, err
		}
		s.pop()
	}
	return false, nil
}

// spend accounts for a step that visits some nodes and returns false if that exceeds a bound.
func (s *search) spend(nodes int) bool {
	if s.cut = s.cut || s.steps >= s.maxSteps || s.visits+nodes > s.maxVisits; s.cut {
		return false
	}
	s.steps++
	s.visits += nodes
	return true
}

// pathKey returns a string that is equal for equal sets of placements and victims.
func (s *search) pathKey() string {
	// NUL separates the fields of a word, SOH separates words.
	words := make([]string, 0, 2*len(s.path))
	for i := range s.path {
		a := s.path[i].alloc
		word := []string{"+" + a.Group.Name, a.NodeID}
		for _, d := range a.Devices {
			word = append(word, d.ID)
		}
		words = append(words, strings.Join(word, "\x00"))
		for _, v := range s.path[i].option.choice.Victims {
			words = append(words, "-"+v.ID)
		}
	}
	slices.Sort(words)
	return strings.Join(words, "\x01")
}

// options returns the options for an instance in the order of preference: nodes
// with free capacity, then evictions. protected are the nodes on which strict
// budgets protect the victims that would be needed.
func (s *search) options(w *wanted) (list []option, protected []int32, err error) {
	before := s.e.State.Snapshot()
	defer s.e.State.Restore(before)
	p := s.newPlacer(w)
	defer p.Close()
	choices := p.FreeOptions()
	if s.e.Preemption.Allowed {
		if nodes := p.Ranker.Full(); len(nodes) > 0 {
			evicting, err := p.EvictionOptions(nodes, nil)
			if err != nil {
				return nil, nil, err
			}
			choices, protected = append(choices, evicting...), p.ProtectedNodes()
		}
	}
	for _, c := range choices {
		list = append(list, option{c, s.e.State.Snapshot()})
	}
	return list, protected, nil
}

// newPlacer returns a Placer for an instance and removes the allocation that it
// replaces from the proposed state. All counts are made again from that state, because push
// and pop do not maintain them.
func (s *search) newPlacer(w *wanted) *placement.Placer {
	s.e.Rules.Recount()
	if w.missing.Replaces != nil {
		s.e.State.Apply(nil, []*model.Allocation{w.missing.Replaces}, model.DesiredStop)
	}
	p := s.e.NewUncachedPlacer(w.group)
	p.WaitingSince = w.since
	return p
}

// push places an instance in the proposed state.
func (s *search) push(w *wanted, o option) {
	e := s.e
	st := step{o, e.NewAllocation(w.group, w.missing, o.choice), e.State.Freeze()}
	e.State.Restore(o.base) // without the allocation that the instance replaces
	e.State.Apply([]*model.Allocation{st.alloc}, o.choice.Victims, model.DesiredEvict)
	s.path = append(s.path, st)
	s.countEvictions()
}

// pop undoes the last push.
func (s *search) pop() {
	last := len(s.path) - 1
	s.e.State.Restore(s.path[last].before)
	s.path = s.path[:last]
	s.countEvictions()
}

func (s *search) countEvictions() {
	victims := [][]*model.Allocation{s.earlier}
	for i := range s.path {
		victims = append(victims, s.path[i].option.choice.Victims)
	}
	s.e.ResetEvictions(victims...)
}

// write adds the solution to the plan.
func (s *search) write() {
	for i := range s.path {
		m, c := &s.wanted[i].missing, &s.path[i].option.choice
		s.e.Plan.Place(&proposal.Placement{
			Alloc: s.path[i].alloc, Victims: c.Victims, Policy: placement.PolicyID(*c), Why: c.Why, Replaces: m.Replaces, Reason: m.Reason,
		})
	}
}
