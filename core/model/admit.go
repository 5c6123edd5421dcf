package model

import "slices"

// IsFeasible reports whether the group may be placed on the node, regardless of its
// allocations: datacenter, drivers, taints, constraints and devices match.
func (g *Group) IsFeasible(n *Node) bool { return g.UntoleratedTaint(n) == nil && g.CanRemain(n) }

// CanRemain reports whether an allocation of the group may remain on the node. It
// is IsFeasible without taints, which restrict new placements only.
func (g *Group) CanRemain(n *Node) bool {
	if len(g.Job.Datacenters) > 0 && !slices.Contains(g.Job.Datacenters, n.Datacenter) {
		return false
	}
	for i := range g.Constraints {
		c := &g.Constraints[i]
		if c.Operator.CountsAllocations() {
			continue
		}
		if value, set := n.Attribute(c.Attribute); !c.Holds(value, set) {
			return false
		}
	}
	return n.MissingDriver(g) == "" && len(n.DeviceChoices(&g.Ask)) > 0
}

// ConstrainsNodeID reports whether some constraint reads the node ID, so that nodes
// of one class may differ for the group.
func (g *Group) ConstrainsNodeID() bool {
	return slices.ContainsFunc(g.Constraints, func(c Constraint) bool { return c.Attribute == AttributeNodeID })
}

// AttributeNodeID is the attribute that distinguishes nodes of one class.
const AttributeNodeID = "node.id"
