package scheduler

import (
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// term is a label term with the live allocations it matches, by domain. For a
// foreign term it is the other way round: the allocations that carry it.
type term struct {
	rule     *model.LabelTerm
	byDomain map[string]int
	onNode   *tally // those with a domain, by node position; nil: apart counts
	apart    *tally // nil: the term keeps nobody apart
	total    int

	ownerJob model.JobKey // foreign terms: who carries it
	owner    string       // its group
}

// newTerm begins to count for a rule; apart, if it is there, counts on each node
// for several terms together.
func (r *run) newTerm(rule *model.LabelTerm, apart *tally) *term {
	t := &term{rule: rule, apart: apart}
	if apart == nil || !local(rule) {
		t.onNode = r.s.tallies.take(r.base)
	}
	if !local(rule) {
		t.byDomain = map[string]int{}
	}
	return t
}

// local is whether the term's domains are single nodes, so that what happens on
// one node concerns no other.
func local(t *model.LabelTerm) bool { return t.TopologyKey == model.TopologyNode }

func (t *term) count(n *model.Node, pos int32, by int) {
	t.total += by
	domain, ok := "", true
	if !local(t.rule) {
		if domain, ok = n.Domain(t.rule.TopologyKey); ok {
			t.byDomain[domain] += by
		}
	}
	if !ok {
		return // without the key the node is in nobody's domain
	}
	if t.onNode != nil {
		t.onNode.add(pos, by)
	}
	if t.apart != nil {
		t.apart.add(pos, by)
	}
}

// inDomain counts the allocations in the node's domain.
func (t *term) inDomain(pos int32, n *model.Node) int {
	if local(t.rule) {
		return t.onNode.at(pos)
	}
	domain, ok := n.Domain(t.rule.TopologyKey)
	if !ok {
		return 0
	}
	return t.byDomain[domain]
}

// hosts is whether the node's domain holds something to be placed beside. The
// first instance of a group that matches its own term may go anywhere the key is.
func (t *term) hosts(pos int32, n *model.Node, g *model.Group) bool {
	if _, ok := n.Domain(t.rule.TopologyKey); !ok {
		return false
	}
	return t.inDomain(pos, n) > 0 || t.total == 0 && t.rule.Matches(g.Labels)
}

func (t *term) String() string {
	pairs := make([]string, 0, len(t.rule.Labels))
	for _, k := range slices.Sorted(maps.Keys(t.rule.Labels)) {
		pairs = append(pairs, k+"="+t.rule.Labels[k])
	}
	return strings.Join(pairs, ",") + " by " + t.rule.TopologyKey
}

// termsOf counts what the terms match among the live allocations of a namespace.
func (r *run) termsOf(rules []model.LabelTerm, namespace string, apart *tally) []*term {
	terms := make([]*term, len(rules))
	var allocs []*model.Allocation
	for i := range rules {
		t := r.newTerm(&rules[i], apart)
		for key := range r.proposed.Labelled(t.rule.Labels) {
			if key.Namespace != namespace {
				continue
			}
			allocs = r.proposed.AppendJobAllocs(allocs[:0], key)
			r.countIn(t, allocs, func(a *model.Allocation) bool { return t.rule.Matches(a.Group.Labels) })
		}
		terms[i] = t
	}
	return terms
}

// countIn counts the live allocations that pass a test where they are.
func (r *run) countIn(t *term, allocs []*model.Allocation, test func(*model.Allocation) bool) {
	for _, a := range allocs {
		if !a.Live() || !test(a) {
			continue
		}
		if pos, ok := r.proposed.Position(a.NodeID); ok {
			t.count(r.proposed.NodeAt(pos), pos, 1)
		}
	}
}

// separators lists the jobs of the group's namespace that have a separate term
// which matches the group: separation binds both sides.
func (r *run) separators(g *model.Group) []*model.Job {
	if len(g.Labels) == 0 {
		return nil // a term names at least one label
	}
	var jobs []*model.Job
	for job := range r.base.Separating() {
		if job.Namespace == g.Job.Namespace && separatesFrom(job, g) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

func separatesFrom(job *model.Job, g *model.Group) bool {
	for _, other := range job.Groups {
		for i := range other.Separate {
			if other.Separate[i].Matches(g.Labels) {
				return true
			}
		}
	}
	return false
}

// foreignTerms collects the terms of others that match the group, with the live
// allocations that carry them.
func (r *run) foreignTerms(g *model.Group, apart *tally) []*term {
	var terms []*term
	var allocs []*model.Allocation
	for _, job := range r.separators(g) {
		allocs = r.proposed.AppendJobAllocs(allocs[:0], job.Key())
		for _, other := range job.Groups {
			for i := range other.Separate {
				if !other.Separate[i].Matches(g.Labels) {
					continue
				}
				t := r.newTerm(&other.Separate[i], apart)
				t.ownerJob, t.owner = job.Key(), other.Name
				r.countIn(t, allocs, func(a *model.Allocation) bool { return a.Group.Name == t.owner })
				terms = append(terms, t)
			}
		}
	}
	return terms
}
