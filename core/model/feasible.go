package model

import (
	"slices"
	"strconv"
	"strings"
)

// driverPrefix is the prefix of the attributes by which a node lists its task
// drivers.
const driverPrefix = "driver."

// MissingDriver returns the first driver of the group's tasks that the node lacks,
// or "" if it has all. A node without driver attributes, such as one of a scenario
// or of another system's cluster, has every driver.
func (n *Node) MissingDriver(g *Group) string {
	for _, d := range g.drivers {
		if !n.hasDriver(d) && n.namesDrivers() {
			return d
		}
	}
	return ""
}

// hasDriver reports whether the node has the driver: its attribute may have any
// value, such as a version, that does not mean "no".
func (n *Node) hasDriver(name string) bool {
	value, set := n.Attributes[driverPrefix+name]
	if !set {
		return false
	}
	yes, err := strconv.ParseBool(value)
	return yes || err != nil
}

func (n *Node) namesDrivers() bool {
	for name := range n.Attributes {
		if strings.HasPrefix(name, driverPrefix) {
			return true
		}
	}
	return false
}

// findDrivers returns the drivers of the group's tasks.
func (g *Group) findDrivers() (list []string) {
	for _, t := range g.Tasks {
		if t.Driver != "" {
			list = append(list, t.Driver)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

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

// AttributeName returns the name under which Node.Attribute finds an attribute. Users may
// write Nomad's name of the node ID.
func AttributeName(written string) string {
	if written == "node.unique.id" {
		return AttributeNodeID
	}
	return written
}
