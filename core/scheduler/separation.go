package scheduler

import "github.com/cede-scheduler/cede/core/model"

// separation counts what keeps groups with certain labels and separate terms
// away from nodes, from both sides: their own terms, and those of others that
// match them. Groups of a job that are alike in this share one.
type separation struct {
	run      *run
	group    *model.Group // one of those it serves
	terms    []*term      // the group's own
	foreign  []*term      // what keeps away from it, one for each topology key
	apart    *tally       // allocations of others on the node that exclude the group
	ownApart *tally       // those of its own job, which are never evicted
	last     *model.Group // that was counted
	keeping  []*term      // that keep last and the group apart
}

// separation finds or makes the one for a group. others are the jobs that may
// want to be apart from it.
func (r *run) separation(g *model.Group, others []model.JobKey) *separation {
	for _, s := range r.separations {
		if s.group.SeparationClass() == g.SeparationClass() {
			return s
		}
	}
	s := &separation{run: r, group: g, apart: r.s.tallies.take(r.base), ownApart: r.s.tallies.take(r.base)}
	s.terms = r.newTerms(g.Separate)
	if len(g.Separate)+len(others) > 0 {
		r.eachLive(r.aboutSeparation(g, others), func(a *model.Allocation) { s.count(a, 1) })
	}
	r.separations = append(r.separations, s)
	return s
}

// aboutSeparation is the jobs that the separation of a group is about: its own,
// those that may want to be apart from it, and those that it wants to be apart from.
func (r *run) aboutSeparation(g *model.Group, others []model.JobKey) []model.JobKey {
	keys := append([]model.JobKey{g.Job.Key()}, others...)
	for i := range g.Separate {
		keys = append(keys, r.distinct(r.proposed.JobsMatching(g.Separate[i].Labels), g.Job.Namespace)...)
	}
	return keys
}

// count follows an allocation of any job that comes (1) or goes (-1).
func (s *separation) count(a *model.Allocation, by int) {
	if len(a.Group.Labels)+len(a.Group.Separate) == 0 || a.Job.Namespace != s.group.Job.Namespace {
		return
	}
	pos := a.NodePos
	node := s.run.proposed.NodeAt(pos)
	if node == nil || !s.countTerms(a, node, pos, by) {
		return
	}
	if a.Job.ID == s.group.Job.ID {
		s.ownApart.add(pos, by)
	} else {
		s.apart.add(pos, by)
	}
}

// countTerms counts an allocation for the terms that keep it and the group
// apart, and tells whether any does on this node.
func (s *separation) countTerms(a *model.Allocation, node *model.Node, pos int32, by int) (apart bool) {
	if a.Group != s.last { // those of a group mostly come together
		s.last, s.keeping = a.Group, s.keepingFrom(a.Group, s.keeping[:0])
	}
	for _, t := range s.keeping {
		apart = t.count(node, pos, by) || apart
	}
	return apart
}

// keepingFrom appends the terms that keep allocations of another group and this
// one apart.
func (s *separation) keepingFrom(g *model.Group, terms []*term) []*term {
	for _, t := range s.terms {
		if t.rule.Matches(g.Labels) {
			terms = append(terms, t)
		}
	}
	for i := range g.Separate {
		if rule := &g.Separate[i]; rule.Matches(s.group.Labels) {
			terms = append(terms, s.foreignTerm(rule))
		}
	}
	return terms
}

// foreignTerm is the count for the topology key of a foreign term.
func (s *separation) foreignTerm(rule *model.LabelTerm) *term {
	for _, t := range s.foreign {
		if t.rule.TopologyKey == rule.TopologyKey {
			return t
		}
	}
	t := s.run.newTerm(rule)
	s.foreign = append(s.foreign, t)
	return t
}

// fixedBy names the separation that no eviction can satisfy; "" when there is none.
func (s *separation) fixedBy(pos int32) string {
	if s.ownApart.at(pos) > 0 {
		return "separate from allocations of its own job"
	}
	return ""
}

// widelyBy names the separation that no eviction on the node itself can satisfy,
// but perhaps some on others; "" when there is none.
func (s *separation) widelyBy(pos int32, n *model.Node) string {
	for _, t := range s.terms {
		if !local(t.rule) && t.inDomain(pos, n) > t.onNode.at(pos) {
			return t.separates
		}
	}
	for _, t := range s.foreign {
		if !local(t.rule) && t.inDomain(pos, n) > t.onNode.at(pos) {
			return "separate from allocations that exclude it by " + t.rule.TopologyKey
		}
	}
	return ""
}
