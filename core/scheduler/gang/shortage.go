package gang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/scheduler/topology"
)

// The reasons of the greedy attempt describe the state after some instances were placed in one
// domain: every other node is excluded by co-location then. If no domain takes all instances,
// the number that the largest one takes explains more. It is computed from prices, which the
// search has computed anyway, so that a gang that is placed costs nothing more.

// anotherGroup is the reason of groups that would be placed without the others.
const anotherGroup = "another group of the job cannot be placed"

// A shortage describes a search in which no domain took all instances of the gang.
type shortage struct {
	levels []topology.Level
	// depth is the deepest level of which domains were examined; -1: none was.
	depth int
	// held holds, by group of that level, whether some domain has capacity for an instance.
	held []bool
	// most and free are the largest numbers of instances of the level for which the amounts of
	// one domain suffice, with evictions and without; domain has the former.
	most, free int
	domain     *feasible.Domain
	// attempts is the number of domains with enough capacity by amounts, and placed the most
	// instances of the gang that were placed in one of them.
	attempts, placed int
	cut              bool // a bound was reached
}

// examine records the prices of the domains of a level, by group and domain.
func (s *shortage) examine(levels []topology.Level, depth int, domains []*feasible.Domain, prices [][]topology.Price) {
	if depth < s.depth {
		return
	}
	if depth > s.depth {
		*s = shortage{levels: levels, depth: depth, held: make([]bool, len(prices)), attempts: s.attempts, placed: s.placed}
	}
	for i, d := range domains {
		most, free := 0, 0
		for k := range prices {
			p := &prices[k][i]
			most, free, s.held[k] = most+p.Most, free+p.Free, s.held[k] || p.Most > 0
		}
		s.free = max(s.free, free)
		if most > s.most || most == s.most && free == most { // free capacity proves the number
			s.most, s.domain = most, d
		}
	}
}

// attempt records an attempt that did not place all instances.
func (s *shortage) attempt(g *gang) {
	s.attempts, s.placed = s.attempts+1, max(s.placed, g.placedOf(g.order))
}

// placedOf returns how many instances of some groups the last attempt placed.
func (g *gang) placedOf(groups []*model.Group) (n int) {
	for _, group := range groups {
		n += len(g.missing[group.Position]) - (g.e.Unplaced.Queued[group.Name] - g.start.unplaced.Queued[group.Name])
	}
	return n
}

// whyNoDomain returns why no domain takes all instances, and of which groups that is the
// reason; "": domains are not the obstacle, or the nodes explain it better.
func (g *gang) whyNoDomain() (why string, groups []*model.Group) {
	s := g.short
	// If the search was cut, there may be such a domain. If some group fits nowhere, nothing was
	// placed before it.
	if s == nil || s.depth < 0 || s.cut || g.cut > 0 || slices.Contains(s.held, false) {
		return "", nil
	}
	if s.attempts > 0 {
		alone := true // every group fits by itself
		for _, group := range g.order {
			switch {
			case !g.isMissing(group):
			case g.fitsAlone(group):
				groups = append(groups, group)
			default:
				alone = false
			}
		}
		if !alone {
			return anotherGroup, groups
		}
		if s.placed == 0 {
			return "", nil
		}
		why = g.describeLevel(s.levels[:1])
		if len(s.levels) > 1 || len(groups) > len(s.levels[0].Groups) {
			why = g.describeAll(s.levels)
		}
		return fmt.Sprintf("%s; the best attempt placed %d", why, s.placed), groups
	}
	l, amount := &s.levels[s.depth], fmt.Sprint(s.most)
	if g.fewestPlaced(s) < s.most {
		amount = "at most " + amount // rules may permit less than the amounts
	}
	domain := "the largest"
	if l.Value != "" {
		domain = "it"
	}
	return fmt.Sprintf("%s; %s takes %s%s", g.describeLevel(s.levels[:s.depth+1]), domain, amount, means(g.e, s.most > s.free)), l.Groups
}

// fitsAlone reports whether the other groups of the gang may be the reason that one is not placed.
func (g *gang) fitsAlone(group *model.Group) bool {
	need := len(g.missing[group.Position])
	return g.placedOf([]*model.Group{group}) == need || groupMayFit(g.e, group, need, placement.ReclaimCeiling(g.e))
}

// fewestPlaced returns how many instances some domain takes without doubt: as many as were
// placed in one. The greedy attempt may have used a small domain.
func (g *gang) fewestPlaced(s *shortage) (n int) {
	if len(s.levels) > 1 || g.replaces() {
		return 0 // they may be in several domains
	}
	if n = g.placedOf(s.levels[0].Groups); n == s.most || s.most > s.free {
		return n
	}
	e, groups := g.e, map[*model.Group]*feasible.Domain{}
	for _, group := range s.levels[0].Groups {
		groups[group] = s.domain
	}
	reasons := e.Unplaced
	g.rollback()
	// Without evictions the policy is not called, so that nothing can fail.
	if e.WithoutPreemption(false, func() error { return g.placeWithin(groups) }) == nil {
		n = max(n, g.placedOf(s.levels[0].Groups))
	}
	g.rollback()
	e.Unplaced = reasons
	return n
}

// replaces reports whether an instance replaces an allocation.
func (g *gang) replaces() bool {
	return slices.ContainsFunc(g.missing, func(list []reconcile.Missing) bool {
		return slices.ContainsFunc(list, func(m reconcile.Missing) bool { return m.Replaces != nil })
	})
}

// describeAttempt states how many instances the greedy attempt placed. The reasons of the others
// hold only beside these: without it, nodes would appear to lack capacity that is free, or
// occupied by lower priorities.
func (g *gang) describeAttempt(placed int) string {
	instances := 0
	for _, list := range g.missing {
		instances += len(list)
	}
	return fmt.Sprintf("an attempt placed %d of %d instances", placed, instances)
}

// describeAll states that no domains of some levels take all instances of the gang.
func (g *gang) describeAll(levels []topology.Level) string {
	var keys []string
	for i := range levels {
		if key := levels[i].Key; !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	instances := 0
	for _, list := range g.missing {
		instances += len(list)
	}
	return fmt.Sprintf("no choice of domains by %s takes all %d instances", strings.Join(keys, " and "), instances)
}

// describeLevel states that no domain of the last of some levels takes all instances of its
// groups, among those that suffice for the levels before.
func (g *gang) describeLevel(levels []topology.Level) string {
	l := &levels[len(levels)-1]
	instances, names := 0, []string{}
	for _, group := range l.Groups {
		instances, names = instances+len(g.missing[group.Position]), append(names, group.Name)
	}
	all := fmt.Sprintf("all %d instances", instances)
	if slices.ContainsFunc(g.order, func(group *model.Group) bool { return g.isMissing(group) && !slices.Contains(l.Groups, group) }) {
		all += " of " + strings.Join(names, " and ")
	}
	if l.Value != "" {
		return fmt.Sprintf("%s %s, where instances run already, does not take %s", l.Key, l.Value, all)
	}
	for i := len(levels) - 2; i >= 0; i-- {
		if outer := &levels[i]; slices.ContainsFunc(l.Groups, func(group *model.Group) bool { return slices.Contains(outer.Groups, group) }) {
			return fmt.Sprintf("no %s within a %s of sufficient capacity takes %s", l.Key, outer.Key, all)
		}
	}
	return fmt.Sprintf("no %s takes %s", l.Key, all)
}

// means returns by which means the amounts were computed. more is set if they add instances.
func means(e *placement.Evaluation, more bool) string {
	var words []string
	if e.Preemption.Allowed {
		words = append(words, "evictions")
	}
	if e.Moves.Allowed() {
		words = append(words, "moves")
	}
	switch {
	case len(words) == 0:
		return ""
	case more:
		return " with " + strings.Join(words, " and ")
	}
	return ", even with " + strings.Join(words, " and ")
}
