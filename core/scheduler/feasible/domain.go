package feasible

import (
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
)

// A Domain is the set of nodes that share a value of a topology key, such as one rack. A
// domain of a nested level is the part of it that lies in a domain of the outer level.
type Domain struct {
	Key, Value string
	Outer      *Domain // nil: none
	// Spans are the nodes of the domain, ascending by chunk. They belong to the snapshot from
	// which the domain was made, and to those with the same nodes.
	Spans []Span
}

// A Span holds some nodes of one chunk.
type Span struct {
	Chunk int
	Nodes uint64 // one bit for each
}

// NodeCount returns the number of nodes of the domain.
func (d *Domain) NodeCount() (n int) {
	for _, s := range d.Spans {
		n += bits.OnesCount64(s.Nodes)
	}
	return n
}

// Contains reports whether a node is in the domain.
func (d *Domain) Contains(n *model.Node) bool {
	for ; d != nil; d = d.Outer {
		if value, ok := n.Domain(d.Key); !ok || value != d.Value {
			return false
		}
	}
	return true
}

// Covers reports whether all nodes of the domain share a value of a topology key.
func (d *Domain) Covers(key string) bool {
	for ; d != nil; d = d.Outer {
		if d.Key == key {
			return true
		}
	}
	return false
}
