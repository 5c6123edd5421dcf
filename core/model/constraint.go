package model

import (
	"maps"
	"slices"
)

// Operator relates an attribute to a value.
type Operator string

// The operators. The last two count allocations: they compare with the nodes of the
// group's other instances instead of reading an attribute.
const (
	OpEqual            Operator = "="
	OpNotEqual         Operator = "!="
	OpLess             Operator = "<"
	OpLessEqual        Operator = "<="
	OpGreater          Operator = ">"
	OpGreaterEqual     Operator = ">="
	OpIn               Operator = "in"
	OpNotIn            Operator = "notin"
	OpRegexp           Operator = "regexp"
	OpVersion          Operator = "version"
	OpIsSet            Operator = "is_set"
	OpIsNotSet         Operator = "is_not_set"
	OpDistinctHosts    Operator = "distinct_hosts"
	OpDistinctProperty Operator = "distinct_property"
)

// Operators lists every operator in the order in which messages name them.
var Operators = []Operator{
	OpEqual, OpNotEqual, OpLess, OpLessEqual, OpGreater, OpGreaterEqual, OpIn, OpNotIn,
	OpRegexp, OpVersion, OpIsSet, OpIsNotSet, OpDistinctHosts, OpDistinctProperty,
}

// Valid reports whether o is one of Operators.
func (o Operator) Valid() bool { return slices.Contains(Operators, o) }

// CountsAllocations reports whether o compares with the nodes of other allocations
// rather than with a node's own attributes.
func (o Operator) CountsAllocations() bool { return o == OpDistinctHosts || o == OpDistinctProperty }

// A Constraint must hold for a node (or a device group) to be feasible.
//
// For in and notin, Values holds the list. For distinct_property, Value is the
// number of instances that may share one value of Attribute; empty means 1. For
// distinct_hosts, Attribute and Value are empty.
type Constraint struct {
	Attribute string
	Operator  Operator
	Value     string
	Values    []string

	matcher // set by compile
}

// An Affinity is a preferred constraint, with a weight of -100 to 100.
type Affinity struct {
	Constraint
	Weight int
}

// A Spread requests that instances are distributed over the values of an attribute.
type Spread struct {
	Attribute string
	Weight    int            // 1..100
	Targets   map[string]int // per cent of the count by value; empty: even
	MaxSkew   int            // 0: soft; else the counts of two values differ by at most this
}

// A LabelTerm selects allocations of the same namespace by labels, within one
// domain: the nodes with the same value of TopologyKey. The key "node" is the node
// itself.
type LabelTerm struct {
	Labels      map[string]string
	TopologyKey string

	pairs []labelPair // Labels, set by compile
}

type labelPair struct{ key, value string }

// compile lists the labels: a term is matched far more often than it is made,
// and a list is read faster than a map.
func (t *LabelTerm) compile() {
	t.pairs = t.pairs[:0:0]
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		t.pairs = append(t.pairs, labelPair{key, t.Labels[key]})
	}
}

// Matches reports whether labels contain every pair of the term.
func (t *LabelTerm) Matches(labels map[string]string) bool {
	if len(t.pairs) == len(t.Labels) {
		for _, p := range t.pairs {
			if got, ok := labels[p.key]; !ok || got != p.value {
				return false
			}
		}
		return true
	}
	for k, v := range t.Labels {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// TopologyNode is the topology key whose domains are single nodes.
const TopologyNode = "node"

// Domain is the value of a topology key on a node.
func (n *Node) Domain(key string) (string, bool) {
	if key == TopologyNode {
		return n.ID, true
	}
	return n.Attribute(key)
}
