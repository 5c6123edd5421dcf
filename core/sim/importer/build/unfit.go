package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// countUnfit counts the tasks that fit no empty node, and the tasks of jobs that require
// more different nodes than the cluster has. Both are normal for a reduced cluster; if
// they were not reported, they would look like a fault of a policy.
func (b *Builder) countUnfit() {
	shapes := nodeShapes(b.File.Nodes)
	fits := make(map[string]bool)
	for i := range b.File.Jobs {
		for j := range b.File.Jobs[i].Groups {
			g := &b.File.Jobs[i].Groups[j]
			key := groupShape(g)
			ok, known := fits[key]
			if !known {
				ok = slices.ContainsFunc(shapes, func(n *scenario.Node) bool { return fitsEmpty(n, g) })
				fits[key] = ok
			}
			apart := slices.ContainsFunc(g.Constraints, func(c scenario.Constraint) bool {
				return c.Operator == string(model.OpDistinctHosts)
			})
			switch {
			case !ok:
				b.Report.Note(*g.Count, "tasks that fit no node of this cluster", "imported; they cannot be placed")
			case apart:
				b.Report.Note(max(0, *g.Count-len(b.File.Nodes)),
					"tasks beyond one per node, of jobs that require different machines", "imported; they stay pending")
			}
		}
	}
}

// nodeShapes returns one node of each kind.
func nodeShapes(nodes []scenario.Node) []*scenario.Node {
	seen := make(map[string]bool)
	var shapes []*scenario.Node
	for i := range nodes {
		n := &nodes[i]
		key := new(strings.Builder)
		writeAmounts(key, n.Capacity)
		for _, k := range slices.Sorted(maps.Keys(n.Attributes)) {
			fmt.Fprintf(key, "%s=%s\n", k, n.Attributes[k])
		}
		for _, d := range n.Devices {
			fmt.Fprintf(key, "%s %d\n", d.ID, d.Count)
		}
		if !seen[key.String()] {
			seen[key.String()] = true
			shapes = append(shapes, n)
		}
	}
	return shapes
}

func groupShape(g *scenario.Group) string {
	key := new(strings.Builder)
	writeAmounts(key, g.Resources)
	for i := range g.Constraints {
		c := &g.Constraints[i]
		fmt.Fprintf(key, "%s %s %s %q\n", c.Attribute, c.Operator, c.Value, c.Values)
	}
	for i := range g.Devices {
		fmt.Fprintf(key, "%s %d\n", g.Devices[i].ID, *g.Devices[i].Count)
	}
	return key.String()
}

func writeAmounts(b *strings.Builder, q scenario.Quantities) {
	for _, k := range slices.Sorted(maps.Keys(q)) {
		fmt.Fprintf(b, "%s %d\n", k, q[k])
	}
}

// fitsEmpty reports whether an empty node can hold one instance. It treats a constraint on
// node.id as satisfied: importers add one only for an existing node.
func fitsEmpty(n *scenario.Node, g *scenario.Group) bool {
	for r, amount := range g.Resources {
		if n.Capacity[r] < amount {
			return false
		}
	}
	for i := range g.Constraints {
		c := &g.Constraints[i]
		if c.Attribute == "node.id" {
			continue
		}
		m := model.Constraint{Attribute: c.Attribute, Operator: model.Operator(c.Operator), Value: c.Value, Values: c.Values}
		if value, set := n.Attributes[c.Attribute]; !m.Holds(value, set) {
			return false
		}
	}
	for i := range g.Devices {
		if !slices.ContainsFunc(n.Devices, func(d scenario.Device) bool {
			return strings.HasPrefix(d.ID, g.Devices[i].ID) && d.Count >= *g.Devices[i].Count
		}) {
			return false
		}
	}
	return true
}
