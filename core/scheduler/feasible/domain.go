package feasible

import "github.com/cede-scheduler/cede/core/model"

// A Domain is the set of nodes that share a value of a topology key, such as one rack.
type Domain struct{ Key, Value string }

// Contains reports whether a node is in the domain.
func (d *Domain) Contains(n *model.Node) bool {
	value, ok := n.Domain(d.Key)
	return ok && value == d.Value
}
