package model

import (
	"slices"
	"strconv"
	"strings"
)

// driverPrefix begins the attributes by which a node says what it runs tasks with.
const driverPrefix = "driver."

// MissingDriver is the first driver of the group's tasks that the node does not have;
// "" when it has them all. A node that says nothing of drivers, such as one of a
// scenario or of another system's cluster, has whatever is asked for.
func (n *Node) MissingDriver(g *Group) string {
	for _, d := range g.drivers {
		if !n.hasDriver(d) && n.namesDrivers() {
			return d
		}
	}
	return ""
}

// hasDriver is whether the node's attribute for the driver says yes: it may be
// anything, such as a version, but what means no.
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

// findDrivers lists the drivers of the group's tasks.
func (g *Group) findDrivers() (list []string) {
	for _, t := range g.Tasks {
		if t.Driver != "" {
			list = append(list, t.Driver)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
