package feasible

import "github.com/cede-scheduler/cede/core/model"

// An antiAffinity counts the terms that exclude groups with the same labels and terms
// from nodes, from both sides: their own terms, and the terms of other groups that
// match them. Groups of a job that are alike in this share one.
type antiAffinity struct {
	ctx     *Context
	group   *model.Group // one of those it serves
	terms   []*labelTerm // the group's own
	foreign []*labelTerm // terms of others that match the group, one per topology key
	// others and own count allocations on a node that exclude the group, of other
	// jobs and of its own job. Those of its own job are never evicted for it.
	others, own *nodeCounter

	// last caches the terms between the group and the group counted last, because
	// allocations of one group are usually counted one after another.
	last      *model.Group
	lastTerms []*labelTerm
}

// antiAffinity finds or makes the counters for a group. repellers are the jobs
// with terms that may match it.
func (x *Context) antiAffinity(g *model.Group, repellers []model.JobKey) *antiAffinity {
	for _, s := range x.antiAffinities {
		if s.group.SeparationClass() == g.SeparationClass() {
			return s
		}
	}
	s := &antiAffinity{ctx: x, group: g, others: x.newCounter(), own: x.newCounter()}
	s.terms = x.newLabelTerms(g.Separate)
	if len(g.Separate)+len(repellers) > 0 {
		eachLive(x.State.Snapshot(), x.concernedJobs(g, repellers), func(a *model.Allocation) { s.count(a, 1) })
	}
	x.antiAffinities = append(x.antiAffinities, s)
	return s
}

// concernedJobs returns the jobs that the anti-affinity of a group concerns: its
// own, its repellers, and those that its own terms match.
func (x *Context) concernedJobs(g *model.Group, repellers []model.JobKey) []model.JobKey {
	keys := append([]model.JobKey{g.Job.Key()}, repellers...)
	for i := range g.Separate {
		keys = append(keys, sortedKeys(x.State.Snapshot().JobsMatching(g.Separate[i].Labels), g.Job.Namespace)...)
	}
	return keys
}

// count updates the counters when an allocation of any job is placed (1) or removed (-1).
func (s *antiAffinity) count(a *model.Allocation, by int) {
	if len(a.Group.Labels)+len(a.Group.Separate) == 0 || a.Job.Namespace != s.group.Job.Namespace {
		return
	}
	pos := a.NodePos
	node := s.ctx.State.Snapshot().NodeAt(pos)
	if node == nil || !s.countTerms(a, node, pos, by) {
		return
	}
	if a.Job.ID == s.group.Job.ID {
		s.own.add(pos, by)
	} else {
		s.others.add(pos, by)
	}
}

// countTerms counts an allocation for every term between it and the group, and
// reports whether any applies on this node.
func (s *antiAffinity) countTerms(a *model.Allocation, node *model.Node, pos int32, by int) (excludes bool) {
	if a.Group != s.last {
		s.last, s.lastTerms = a.Group, s.termsBetween(a.Group, s.lastTerms[:0])
	}
	for _, t := range s.lastTerms {
		excludes = t.count(node, pos, by) || excludes
	}
	return excludes
}

// termsBetween appends the terms of either side that match the other side.
func (s *antiAffinity) termsBetween(g *model.Group, terms []*labelTerm) []*labelTerm {
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

// foreignTerm returns the counter for the topology key of another group's term.
func (s *antiAffinity) foreignTerm(rule *model.LabelTerm) *labelTerm {
	for _, t := range s.foreign {
		if t.rule.TopologyKey == rule.TopologyKey {
			return t
		}
	}
	t := s.ctx.newLabelTerm(rule)
	s.foreign = append(s.foreign, t)
	return t
}

// ownViolation returns the reason if an allocation of the group's own job excludes
// it from a node, so that no eviction helps; else "".
func (s *antiAffinity) ownViolation(pos int32) string {
	if s.own.at(pos) > 0 {
		return "separate from allocations of its own job"
	}
	return ""
}

// domainViolation returns the reason if allocations on other nodes of a domain
// exclude the group from a node, so that no eviction on the node itself helps; else "".
func (s *antiAffinity) domainViolation(pos int32, n *model.Node) string {
	for _, t := range s.terms {
		if !IsNodeLocal(t.rule) && t.inDomain(pos, n) > t.onNode.at(pos) {
			return t.repelReason
		}
	}
	for _, t := range s.foreign {
		if !IsNodeLocal(t.rule) && t.inDomain(pos, n) > t.onNode.at(pos) {
			return "separate from allocations that exclude it by " + t.rule.TopologyKey
		}
	}
	return ""
}
