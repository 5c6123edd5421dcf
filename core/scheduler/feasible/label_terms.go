package feasible

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A labelTerm is a label term with the number of live allocations that it
// matches, by topology domain. For the terms of other groups the direction is
// reversed: it counts allocations that carry a term with the topology key that
// matches the group at hand.
type labelTerm struct {
	rule     *model.LabelTerm
	byDomain map[string]int
	// otherJobs counts by domain the allocations of other jobs; used by co-location only.
	otherJobs map[string]int
	onNode    *nodeCounter // allocations with a domain, by node position
	total     int
	// Reasons for nodes that the term forbids. They are formatted once because they
	// may apply to most nodes.
	repelReason, colocateReason, keyReason string
}

// newLabelTerm returns a term without counts. A term whose domains are nodes needs no
// map.
func (x *Context) newLabelTerm(rule *model.LabelTerm) *labelTerm {
	t := &labelTerm{rule: rule, onNode: x.newCounter()}
	t.repelReason, t.colocateReason = "separate from "+t.String(), "colocate with "+t.String()
	t.keyReason = fmt.Sprintf("%s (it has no attribute %s)", t.colocateReason, rule.TopologyKey)
	if !IsNodeLocal(rule) {
		t.byDomain, t.otherJobs = map[string]int{}, map[string]int{}
	}
	return t
}

func (x *Context) newLabelTerms(rules []model.LabelTerm) []*labelTerm {
	terms := make([]*labelTerm, len(rules))
	for i := range rules {
		terms[i] = x.newLabelTerm(&rules[i])
	}
	return terms
}

// IsNodeLocal reports whether the domains of a term are single nodes, so that a
// change on one node never affects another one.
func IsNodeLocal(t *model.LabelTerm) bool { return t.TopologyKey == model.TopologyNode }

// SpansNodes reports whether some term has domains of several nodes.
func SpansNodes(terms []model.LabelTerm) bool {
	return slices.ContainsFunc(terms, func(t model.LabelTerm) bool { return !IsNodeLocal(&t) })
}

// count adds or removes an allocation and reports whether its node has a domain.
// A node without the topology key is in no domain.
func (t *labelTerm) count(n *model.Node, pos int32, by int) (counted bool) {
	t.total += by
	if !IsNodeLocal(t.rule) {
		domain, ok := n.Domain(t.rule.TopologyKey)
		if !ok {
			return false
		}
		t.byDomain[domain] += by
	}
	t.onNode.add(pos, by)
	return true
}

// countOtherJob records that an allocation that count has counted is of another job.
func (t *labelTerm) countOtherJob(n *model.Node, by int) {
	if domain, ok := n.Domain(t.rule.TopologyKey); ok && !IsNodeLocal(t.rule) {
		t.otherJobs[domain] += by
	}
}

// inDomain returns the number of allocations in the node's domain.
func (t *labelTerm) inDomain(pos int32, n *model.Node) int {
	if IsNodeLocal(t.rule) {
		return t.onNode.at(pos)
	}
	domain, ok := n.Domain(t.rule.TopologyKey)
	if !ok {
		return 0
	}
	return t.byDomain[domain]
}

// hasTarget reports whether a co-location term holds on a node. The first instance
// of a group that matches its own term may go to any node with the topology key.
func (t *labelTerm) hasTarget(pos int32, n *model.Node, g *model.Group) bool {
	if _, ok := n.Domain(t.rule.TopologyKey); !ok {
		return false
	}
	return t.inDomain(pos, n) > 0 || t.total == 0 && t.rule.Matches(g.Labels)
}

// untargetedReason returns why a co-location term does not hold on a node.
func (t *labelTerm) untargetedReason(n *model.Node) string {
	if _, ok := n.Domain(t.rule.TopologyKey); !ok {
		return t.keyReason
	}
	return t.colocateReason
}

func (t *labelTerm) String() string {
	pairs := make([]string, 0, len(t.rule.Labels))
	for _, k := range slices.Sorted(maps.Keys(t.rule.Labels)) {
		pairs = append(pairs, k+"="+t.rule.Labels[k])
	}
	return strings.Join(pairs, ",") + " by " + t.rule.TopologyKey
}

// Repels reports whether an anti-affinity term of a matches b and applies on a node.
// Both groups must be of one namespace, since terms do not reach beyond it.
func Repels(a, b *model.Group, n *model.Node) bool {
	for i := range a.Separate {
		if t := &a.Separate[i]; t.Matches(b.Labels) {
			if _, ok := n.Domain(t.TopologyKey); ok {
				return true
			}
		}
	}
	return false
}

// Conflict reports whether anti-affinity, of either side, forbids two allocations
// on the nodes on which they are.
func Conflict(snap *state.Snapshot, a, b *model.Allocation) bool {
	return a.Job.Namespace == b.Job.Namespace && (repelsAt(snap, a, b) || repelsAt(snap, b, a))
}

// repelsAt reports whether a term of a forbids b on the node where b is.
func repelsAt(snap *state.Snapshot, a, b *model.Allocation) bool {
	for i := range a.Group.Separate {
		t := &a.Group.Separate[i]
		if !t.Matches(b.Group.Labels) {
			continue
		}
		if IsNodeLocal(t) {
			if a.NodePos == b.NodePos {
				return true
			}
			continue
		}
		x, okX := snap.NodeAt(a.NodePos).Domain(t.TopologyKey)
		y, okY := snap.NodeAt(b.NodePos).Domain(t.TopologyKey)
		if okX && okY && x == y {
			return true
		}
	}
	return false
}
