package scheduler

import (
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// term is a label term with the live allocations it matches, by domain. For
// foreign terms it is the other way round: those that carry a term with the key
// that matches the group.
type term struct {
	rule     *model.LabelTerm
	byDomain map[string]int
	others   map[string]int // by domain, those of other jobs than the group's; of co-location alone
	onNode   *tally         // those with a domain, by node position
	total    int
	// What is said of nodes that it forbids, made once: most nodes may be.
	separates, colocates string
}

// newTerm begins to count for one rule.
func (r *run) newTerm(rule *model.LabelTerm) *term {
	t := &term{rule: rule, onNode: r.s.tallies.take(r.base)}
	t.separates, t.colocates = "separate from "+t.String(), "colocate with "+t.String()
	if !local(rule) {
		t.byDomain, t.others = map[string]int{}, map[string]int{}
	}
	return t
}

// local is whether the term's domains are single nodes, so that what happens on
// one node concerns no other.
func local(t *model.LabelTerm) bool { return t.TopologyKey == model.TopologyNode }

// count follows an allocation that comes to a node or goes, and tells whether
// the node is in a domain: without the key it is in nobody's.
func (t *term) count(n *model.Node, pos int32, by int) (counted bool) {
	t.total += by
	if !local(t.rule) {
		domain, ok := n.Domain(t.rule.TopologyKey)
		if !ok {
			return false
		}
		t.byDomain[domain] += by
	}
	t.onNode.add(pos, by)
	return true
}

// countOther notes that an allocation that is counted is of another job.
func (t *term) countOther(n *model.Node, by int) {
	if domain, ok := n.Domain(t.rule.TopologyKey); ok && !local(t.rule) {
		t.others[domain] += by
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

// newTerms begins to count for rules.
func (r *run) newTerms(rules []model.LabelTerm) []*term {
	terms := make([]*term, len(rules))
	for i := range rules {
		terms[i] = r.newTerm(&rules[i])
	}
	return terms
}
