package feasible

import (
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A property is a distinct_property constraint with its counts.
type property struct {
	rule   *model.Constraint
	limit  int            // instances per value
	counts map[string]int // instances by value
	reason string         // for nodes that it forbids
	lacks  string         // for nodes without the attribute
}

// newProperty returns the constraint without counts. A value that is not a positive
// number means one instance for each value of the attribute.
func newProperty(c *model.Constraint) *property {
	p := &property{rule: c, limit: 1, counts: map[string]int{}}
	if n, err := strconv.Atoi(c.Value); err == nil && n > 0 {
		p.limit = n
	}
	p.reason = p.rule.String() + " ≤ " + strconv.Itoa(p.limit)
	p.lacks = "lacks attribute " + c.Attribute + " of " + string(c.Operator)
	return p
}

func (p *property) count(n *model.Node, by int) {
	if value, ok := n.Attribute(p.rule.Attribute); ok {
		p.counts[value] += by
	}
}

// violation returns why one more instance may not share the node's value, or "". A node
// without the attribute is not allowed. Its reason differs from that of a full value, because
// the remedy does: evictions and further nodes with the same attributes do not help.
func (p *property) violation(n *model.Node) string {
	switch value, ok := n.Attribute(p.rule.Attribute); {
	case !ok:
		return p.lacks
	case p.counts[value] >= p.limit:
		return p.reason
	}
	return ""
}

// A spread is a spread rule with its counts.
type spread struct {
	rule    *model.Spread
	total   int                 // desired instances of the group
	counts  map[string]int      // instances by value
	domain  map[string]struct{} // values of all feasible nodes
	targets float64             // sum of the targets, in per cent
	reason  string              // for nodes that MaxSkew forbids
	lacks   string              // for nodes without the attribute, if MaxSkew is set
}

// newSpread collects the values over which a group may be spread: those of schedulable
// nodes that are feasible for it. It costs a pass over all nodes.
func newSpread(rule *model.Spread, g *model.Group, snap *state.Snapshot) *spread {
	s := &spread{rule: rule, total: g.Count, counts: map[string]int{}, domain: map[string]struct{}{}}
	s.reason = "spread over " + rule.Attribute + " with maxSkew " + strconv.Itoa(rule.MaxSkew)
	s.lacks = "lacks attribute " + rule.Attribute + " of a spread with maxSkew " + strconv.Itoa(rule.MaxSkew)
	checker := NewNodeChecker(g, snap.ClassCount())
	for c := range snap.ChunkCount() {
		chunk := snap.Chunk(c)
		for i := range chunk.Len() {
			if chunk.Eligible()>>i&1 == 0 || !checker.Feasible(chunk, i) {
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

// violation returns why MaxSkew does not hold with one more instance on the node, or "".
// Values without an instance count as lowest, so empty domains are filled first. A node without
// the attribute has no value, and is not allowed, for a reason of its own.
func (s *spread) violation(n *model.Node) string {
	if s.rule.MaxSkew <= 0 {
		return ""
	}
	value, ok := n.Attribute(s.rule.Attribute)
	if !ok {
		return s.lacks
	}
	if lowest, _ := s.extremes(); s.counts[value]+1-lowest > s.rule.MaxSkew {
		return s.reason
	}
	return ""
}

// extremes returns the lowest and the highest number of instances on any value.
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

// boost returns how desirable the node's value is, in [-1, 1].
//
// With targets it is the missing share of the value's target, the instance to be placed
// included. Values without a target divide the remaining per cent; if nothing remains,
// they are undesirable. Without targets the value with the fewest instances is the most
// desirable. A node without the attribute is undesirable. The result takes part in
// decisions: its operations are in a fixed order, so that it has the same bits on every
// machine.
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

// used returns the instances on a value. All values without a target count as one.
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

// evenBoost returns 1 for a value with the fewest instances, -1 for one with the most,
// and 0 if all have equally many.
func (s *spread) evenBoost(value string) float64 {
	lowest, highest := s.extremes()
	if lowest == highest {
		return 0
	}
	return 1 - 2*float64(s.counts[value]-lowest)/float64(highest-lowest)
}
