package scheduler

import (
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
)

// property is a distinct_property constraint with its counts.
type property struct {
	rule   *model.Constraint
	limit  int
	counts map[string]int
	// forbids is what is said of nodes that it forbids.
	forbids string
}

func newProperty(c *model.Constraint) *property {
	p := &property{rule: c, limit: 1, counts: map[string]int{}}
	if n, err := strconv.Atoi(c.Value); err == nil && n > 0 {
		p.limit = n
	}
	p.forbids = p.String()
	return p
}

func (p *property) count(n *model.Node, by int) {
	if value, ok := n.Attribute(p.rule.Attribute); ok {
		p.counts[value] += by
	}
}

// allows is whether one more instance may share the node's value. A node
// without the attribute has none to share.
func (p *property) allows(n *model.Node) bool {
	value, ok := n.Attribute(p.rule.Attribute)
	return ok && p.counts[value] < p.limit
}

func (p *property) String() string { return p.rule.String() + " ≤ " + strconv.Itoa(p.limit) }

// spread is a spread wish with its counts. Its values are those of all nodes
// that may take the group.
type spread struct {
	rule    *model.Spread
	total   int                 // instances wanted
	counts  map[string]int      // instances by value
	domain  map[string]struct{} // values that an instance may go to
	targets float64             // per cent named
	forbids string              // what is said of nodes that a hard skew forbids
}

// newSpread finds the values over which the group may be spread: those of
// schedulable nodes that are feasible for it.
func newSpread(rule *model.Spread, g *model.Group, r *run) *spread {
	s := &spread{rule: rule, total: g.Count, counts: map[string]int{}, domain: map[string]struct{}{}}
	s.forbids = "spread over " + rule.Attribute + " with maxSkew " + strconv.Itoa(rule.MaxSkew)
	f := newFeasibility(g, r.base.ClassCount())
	for c := range r.base.ChunkCount() {
		chunk := r.base.Chunk(c)
		for i := range chunk.Len() {
			if chunk.Eligible()>>i&1 == 0 || !f.node(chunk, i) {
				continue
			}
			if value, ok := chunk.Node(i).Attribute(rule.Attribute); ok {
				s.domain[value] = struct{}{}
			}
		}
	}
	for _, percent := range rule.Targets {
		s.targets += float64(percent)
	}
	return s
}

func (s *spread) count(n *model.Node, by int) {
	if value, ok := n.Attribute(s.rule.Attribute); ok {
		s.counts[value] += by
	}
}

// allows is whether one more instance keeps a hard skew.
func (s *spread) allows(n *model.Node) bool {
	if s.rule.MaxSkew <= 0 {
		return true
	}
	value, ok := n.Attribute(s.rule.Attribute)
	if !ok {
		return false
	}
	lowest, _ := s.extremes()
	return s.counts[value]+1-lowest <= s.rule.MaxSkew
}

func (s *spread) extremes() (lowest, highest int) {
	first := true
	for value := range s.domain {
		n := s.counts[value]
		if first || n < lowest {
			lowest = n
		}
		if first || n > highest {
			highest = n
		}
		first = false
	}
	return lowest, highest
}

// boost is how much a node's value is wanted, in [-1, 1]. With targets it is
// the share of the value's target that is still missing, counting the instance
// to be placed; values that no target names share what the targets leave, and
// are unwanted when they leave nothing. Without targets the emptiest value is
// wanted most. A node without the attribute is unwanted.
func (s *spread) boost(n *model.Node) float64 {
	value, ok := n.Attribute(s.rule.Attribute)
	if !ok {
		return -1
	}
	if len(s.rule.Targets) == 0 {
		return s.evenBoost(value)
	}
	percent, named := s.rule.Targets[value]
	share := float64(percent)
	if !named {
		share = 100 - s.targets
	}
	desired := float64(share / 100 * float64(s.total))
	if desired <= 0 {
		return -1
	}
	missing := (desired - float64(s.used(value, named)+1)) / desired
	return max(missing, -1)
}

// used counts instances on a value; values that no target names count together.
func (s *spread) used(value string, named bool) int {
	if named {
		return s.counts[value]
	}
	n := 0
	for v, count := range s.counts {
		if _, target := s.rule.Targets[v]; !target {
			n += count
		}
	}
	return n
}

func (s *spread) evenBoost(value string) float64 {
	lowest, highest := s.extremes()
	if lowest == highest {
		return 0
	}
	return 1 - 2*float64(s.counts[value]-lowest)/float64(highest-lowest)
}
