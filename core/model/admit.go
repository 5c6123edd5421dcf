package model

import "slices"

// IsFeasible is whether the node may take the group by what it is, whatever runs
// there: datacenter, drivers, taints, constraints and devices.
func (g *Group) IsFeasible(n *Node) bool { return g.UntoleratedTaint(n) == nil && g.CanRemain(n) }

// CanRemain is whether an allocation of the group may stay on the node: Admits
// without taints, which concern only what is to be placed.
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

// ConstrainsNodeID is whether some constraint reads the node's id, so that nodes of
// one class may differ for the group.
func (g *Group) ConstrainsNodeID() bool {
	return slices.ContainsFunc(g.Constraints, func(c Constraint) bool { return c.Attribute == AttributeNodeID })
}

// AttributeNodeID is the attribute that tells nodes of one class apart.
const AttributeNodeID = "node.id"
