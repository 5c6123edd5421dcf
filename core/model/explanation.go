package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Explanation is why instances of a group were not placed, node by node and
// dimension by dimension, added up for people.
type Explanation struct {
	Nodes     int            // nodes looked at
	Filtered  map[string]int // constraint or state that ruled nodes out -> nodes
	Exhausted map[string]int // what nodes lacked ("memory", "port 80") -> nodes
	Preempted map[string]int // why eviction did not help -> nodes
	Waiting   int            // further instances that were not tried after this one failed
	Samples   []NodeReason   // a few nodes by name, ascending
}

// NodeReason is why one node was not chosen.
type NodeReason struct{ NodeID, Reason string }

// Filter counts a node that a rule excludes.
func (e *Explanation) Filter(reason string) { Count(&e.Filtered, reason, 1) }

// Exhaust counts a node that lacks something.
func (e *Explanation) Exhaust(what string) { Count(&e.Exhausted, what, 1) }

// Count adds n nodes to a reason in one of the explanation's maps.
func Count(m *map[string]int, reason string, n int) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[reason] += n
}

// String is one line such as
//
//	0 of 4 nodes: 2 lack memory, 1 has no room even without every lower-priority
//	allocation, 1 excluded by zone = a
func (e *Explanation) String() string {
	if e == nil || e.Nodes == 0 {
		return "there are no nodes"
	}
	var parts []string
	parts = appendCounts(parts, e.Exhausted, "lack ")
	parts = appendCounts(parts, e.Filtered, "excluded by ")
	parts = appendCounts(parts, e.Preempted, "eviction: ")
	return fmt.Sprintf("0 of %d nodes: %s", e.Nodes, strings.Join(parts, ", "))
}

func appendCounts(parts []string, counts map[string]int, verb string) []string {
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%d %s%s", counts[k], verb, k))
	}
	return parts
}
