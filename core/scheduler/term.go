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
	onNode   map[int32]int // those with a domain, by node position
	total    int

	ownerJob model.JobKey // foreign terms: who carries it
	owner    string       // its group
}

func newTerm(rule *model.LabelTerm) *term {
	return &term{rule: rule, byDomain: map[string]int{}, onNode: map[int32]int{}}
}

func (t *term) count(n *model.Node, pos int32, by int) {
	t.total += by
	if domain, ok := n.Domain(t.rule.TopologyKey); ok {
		t.byDomain[domain] += by
		t.onNode[pos] += by
	}
}

// conflicts counts what keeps the group out of the node's domain. A node
// without the key is in nobody's domain.
func (t *term) conflicts(n *model.Node) int {
	domain, ok := n.Domain(t.rule.TopologyKey)
	if !ok {
		return 0
	}
	return t.byDomain[domain]
}

// hosts is whether the node's domain holds something to be placed beside. The
// first instance of a group that matches its own term may go anywhere the key is.
func (t *term) hosts(n *model.Node, g *model.Group) bool {
	domain, ok := n.Domain(t.rule.TopologyKey)
	if !ok {
		return false
	}
	return t.byDomain[domain] > 0 || t.total == 0 && t.rule.Matches(g.Labels)
}

func (t *term) String() string {
	pairs := make([]string, 0, len(t.rule.Labels))
	for _, k := range slices.Sorted(maps.Keys(t.rule.Labels)) {
		pairs = append(pairs, k+"="+t.rule.Labels[k])
	}
	return strings.Join(pairs, ",") + " by " + t.rule.TopologyKey
}

// termsOf counts what the terms match among the live allocations of a namespace.
func (r *run) termsOf(rules []model.LabelTerm, namespace string) []*term {
	if len(rules) == 0 {
		return nil
	}
	terms := make([]*term, len(rules))
	for i := range rules {
		terms[i] = newTerm(&rules[i])
	}
	r.eachLive(namespace, func(a *model.Allocation, pos int32, n *model.Node) {
		for _, t := range terms {
			if t.rule.Matches(a.Group.Labels) {
				t.count(n, pos, 1)
			}
		}
	})
	return terms
}

// eachLive visits the live allocations of a namespace as proposed.
func (r *run) eachLive(namespace string, visit func(a *model.Allocation, pos int32, n *model.Node)) {
	var allocs []*model.Allocation
	for job := range r.proposed.JobsPrefix(namespace, "") {
		allocs = r.proposed.AppendJobAllocs(allocs[:0], job.Key())
		for _, a := range allocs {
			if !a.Live() {
				continue
			}
			if pos, ok := r.proposed.Position(a.NodeID); ok {
				visit(a, pos, r.proposed.NodeAt(pos))
			}
		}
	}
}

// separators lists the jobs of the group's namespace that have a separate term
// which matches the group: separation binds both sides.
func (r *run) separators(g *model.Group) []*model.Job {
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
func (r *run) foreignTerms(g *model.Group) []*term {
	var terms []*term
	var allocs []*model.Allocation
	for _, job := range r.separators(g) {
		allocs = r.proposed.AppendJobAllocs(allocs[:0], job.Key())
		for _, other := range job.Groups {
			for i := range other.Separate {
				if !other.Separate[i].Matches(g.Labels) {
					continue
				}
				t := newTerm(&other.Separate[i])
				t.ownerJob, t.owner = job.Key(), other.Name
				r.countCarriers(t, allocs)
				terms = append(terms, t)
			}
		}
	}
	return terms
}

func (r *run) countCarriers(t *term, allocs []*model.Allocation) {
	for _, a := range allocs {
		if pos, ok := r.proposed.Position(a.NodeID); ok && a.Live() && a.Group.Name == t.owner {
			t.count(r.proposed.NodeAt(pos), pos, 1)
		}
	}
}
