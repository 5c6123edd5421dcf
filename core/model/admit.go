package model

import "slices"

// Admits is whether the node may take the group by what it is, whatever runs
// there: datacenter, drivers, taints, constraints and devices.
func (g *Group) Admits(n *Node) bool { return g.Repelled(n) == nil && g.Keeps(n) }

// Keeps is whether an allocation of the group may stay on the node: Admits
// without taints, which concern only what is to be placed.
func (g *Group) Keeps(n *Node) bool {
	if len(g.Job.Datacenters) > 0 && !slices.Contains(g.Job.Datacenters, n.Datacenter) {
		return false
	}
	for i := range g.Constraints {
		c := &g.Constraints[i]
		if c.Operator.Counts() {
			continue
		}
		if value, set := n.Attribute(c.Attribute); !c.Holds(value, set) {
			return false
		}
	}
	return n.LacksDriver(g) == "" && len(n.DeviceChoices(&g.Ask)) > 0
}

// NamesNodes is whether some constraint reads the node's id, so that nodes of
// one class may differ for the group.
func (g *Group) NamesNodes() bool {
	return slices.ContainsFunc(g.Constraints, func(c Constraint) bool { return c.Attribute == AttributeNodeID })
}

// AttributeNodeID is the attribute that tells nodes of one class apart.
const AttributeNodeID = "node.id"
