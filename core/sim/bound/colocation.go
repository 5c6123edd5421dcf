package bound

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// colocation restricts the nodes of groups with co-location terms.
type colocation struct {
	key     string          // topology key of Problem.OneDomain; "" if there is none
	domains map[string]int  // by value of key
	terms   [][]allowedTerm // by group
}

// allowedTerm is a term with the domains of the allocations that it matches.
type allowedTerm struct {
	key     string
	domains map[string]bool // nil: any node with the key
}

// allows reports whether a node has the domains that the terms of a group require.
func (c *colocation) allows(group int, n *model.Node) bool {
	for _, t := range c.terms[group] {
		value, ok := n.Domain(t.key)
		if !ok || t.domains != nil && !t.domains[value] {
			return false
		}
	}
	return true
}

// domain returns the number of a node's domain; negative: it has none.
func (c *colocation) domain(n *model.Node) int {
	value, ok := n.Domain(c.key)
	if c.key == "" || !ok {
		return -1
	}
	at, seen := c.domains[value]
	if !seen {
		at = len(c.domains)
		c.domains[value] = at
	}
	return at
}

// colocate determines the domains of groups with co-location terms. A term that matches
// allocations restricts its group to their domains. A term that matches only the
// instances to place requires one domain for all of them.
func (b *builder) colocate() {
	b.colo = colocation{domains: map[string]int{}, terms: make([][]allowedTerm, len(b.counts))}
	for at, g := range b.Job.Groups {
		if b.counts[at] == 0 {
			continue
		}
		for i := range g.Colocate {
			b.addTerm(at, &g.Colocate[i])
		}
	}
	b.problem.OneDomain = b.colo.key != ""
}

// addTerm adds a term of a group. It drops the term if its targets depend on the answer:
// instances of other groups, or allocations that may all be evicted.
func (b *builder) addTerm(group int, t *model.LabelTerm) {
	domains, found, lasting := map[string]bool{}, false, false
	for c := range b.snap.ChunkCount() {
		chunk := b.snap.Chunk(c)
		for i := range chunk.Len() {
			for _, row := range chunk.Rows(i) {
				if !b.targets(t, &row) {
					continue
				}
				found, lasting = true, lasting || !b.candidate(row.Alloc)
				if value, ok := chunk.Node(i).Domain(t.TopologyKey); ok {
					domains[value] = true
				}
			}
		}
	}
	own, others := b.matched(group, t)
	switch {
	case found && lasting && !others:
		b.colo.terms[group] = append(b.colo.terms[group], allowedTerm{t.TopologyKey, domains})
		return
	case !found && own && (!others || b.sharedTerm(t)) && (b.colo.key == "" || b.colo.key == t.TopologyKey) && b.termsOfAll(t):
		b.colo.key = t.TopologyKey
	case !found && !own && !others:
		b.colo.terms[group] = append(b.colo.terms[group], allowedTerm{t.TopologyKey, domains})
		return
	default:
		b.drop("colocate")
	}
	b.colo.terms[group] = append(b.colo.terms[group], allowedTerm{key: t.TopologyKey})
}

func (b *builder) targets(t *model.LabelTerm, row *state.Row) bool {
	return row.Group.Job.Namespace == b.Job.Namespace && t.Matches(row.Group.Labels)
}

// matched reports whether a term matches its own group, and another group with instances
// to place.
func (b *builder) matched(group int, t *model.LabelTerm) (own, others bool) {
	for at, g := range b.Job.Groups {
		switch {
		case b.counts[at] == 0 || !t.Matches(g.Labels):
		case at == group:
			own = true
		default:
			others = true
		}
	}
	return own, others
}

// sharedTerm reports whether a term matches every group with instances to place.
func (b *builder) sharedTerm(t *model.LabelTerm) bool {
	for at, g := range b.Job.Groups {
		if b.counts[at] > 0 && !t.Matches(g.Labels) {
			return false
		}
	}
	return true
}

// termsOfAll reports whether every group with instances to place has a term with the key
// and labels of this one, so that one domain contains all of them.
func (b *builder) termsOfAll(t *model.LabelTerm) bool {
	for at, g := range b.Job.Groups {
		if b.counts[at] > 0 && !slices.ContainsFunc(g.Colocate, func(o model.LabelTerm) bool {
			return o.TopologyKey == t.TopologyKey && b.sharedTerm(&o)
		}) {
			return false
		}
	}
	return true
}
