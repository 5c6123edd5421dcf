package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Explanation summarizes why instances of a group were not placed, by node and
// dimension.
type Explanation struct {
	Of         string         // plural noun for the candidates; "": nodes
	Nodes      int            // number of candidates
	NotReady   map[string]int // reason ("draining") to ineligible nodes
	Filtered   map[string]int // constraint or rule to excluded nodes
	Exhausted  map[string]int // shortage ("memory", "port 80") to nodes
	Preempted  map[string]int // why preemption did not help, to nodes
	NoEviction string         // why nothing may be preempted; "" if preemption is allowed
	Waiting    int            // further instances that were not tried after the first failure
	Samples    []NodeReason   // a few nodes by name, ascending
}

// A NodeReason is why one node was not chosen.
type NodeReason struct{ NodeID, Reason string }

// CountFiltered counts a node that a rule excludes.
func (e *Explanation) CountFiltered(reason string) { CountReason(&e.Filtered, reason, 1) }

// CountExhausted counts a node with a shortage.
func (e *Explanation) CountExhausted(what string) { CountReason(&e.Exhausted, what, 1) }

// CountReason adds n nodes to a reason in one of the explanation's maps.
func CountReason(m *map[string]int, reason string, n int) {
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
//	0 of 4 nodes: 2 lack memory, 1 is down, 1 excluded by zone = a; eviction does
//	not help: on 2 nothing has a priority of 60 or less
func (e *Explanation) String() string {
	if e == nil {
		return "there are no nodes"
	}
	many := cmp.Or(e.Of, "nodes")
	if e.Nodes == 0 {
		return "there are no " + many
	}
	parts := appendCounts(nil, e.Exhausted, "%d lacks %s", "%d lack %s")
	parts = appendCounts(parts, e.NotReady, "%d is %s", "%d are %s")
	parts = appendCounts(parts, e.Filtered, "%d excluded by %s", "%d excluded by %s")
	noun := many
	if e.Nodes == 1 {
		noun = strings.TrimSuffix(many, "s")
	}
	text := fmt.Sprintf("0 of %d %s: %s", e.Nodes, noun, strings.Join(parts, ", "))
	switch {
	case len(e.Preempted) > 0:
		text += "; eviction does not help: " + strings.Join(appendCounts(nil, e.Preempted, "on %d %s", "on %d %s"), ", ")
	case e.NoEviction != "" && len(e.Exhausted) > 0:
		text += "; no preemption: " + e.NoEviction
	}
	return text
}

// appendCounts adds a part for each reason, the most frequent first: one for a
// single node and many for several are its words.
func appendCounts(parts []string, counts map[string]int, one, many string) []string {
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	for _, k := range keys {
		words := many
		if counts[k] == 1 {
			words = one
		}
		parts = append(parts, fmt.Sprintf(words, counts[k], k))
	}
	return parts
}
