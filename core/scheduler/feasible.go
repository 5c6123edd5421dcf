package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// feasibility answers whether a node may take a group by what the node is:
// datacenter, taints, drivers, constraints and devices, whatever runs there. Nodes of one class
// share the answer; a constraint on node.id is asked of each node.
type feasibility struct {
	job     *model.Job
	group   *model.Group
	verdict []int8   // by class: 0 unknown, 1 feasible, -1 not
	reason  []string // by class
	escaped []*model.Constraint
	shared  []*model.Constraint
	within  *domain // nodes outside are not looked at; nil: all are
}

func newFeasibility(g *model.Group, classes int) *feasibility {
	return (&feasibility{}).reset(g, classes)
}

// reset begins with another group, in memory of an earlier one.
func (f *feasibility) reset(g *model.Group, classes int) *feasibility {
	f.job, f.group, f.escaped, f.shared, f.within = g.Job, g, f.escaped[:0], f.shared[:0], nil
	f.verdict, f.reason = resized(f.verdict, classes), resized(f.reason, classes)
	clear(f.verdict)
	for i := range g.Constraints {
		switch c := &g.Constraints[i]; {
		case c.Operator.CountsAllocations():
		case c.Attribute == model.AttributeNodeID:
			f.escaped = append(f.escaped, c)
		default:
			f.shared = append(f.shared, c)
		}
	}
	return f
}

// node is whether the node may take the group; chunk[i] is the node.
func (f *feasibility) node(chunk *state.Chunk, i int) bool {
	class := chunk.Class(i)
	if f.verdict[class] == 0 {
		f.decide(class, chunk.Node(i))
	}
	return f.verdict[class] > 0 && (len(f.escaped) == 0 || f.escapedReason(chunk.Node(i)) == "") &&
		(f.within == nil || f.within.holds(chunk.Node(i)))
}

func (f *feasibility) decide(class int32, n *model.Node) {
	f.verdict[class] = 1
	if why := f.classReason(n); why != "" {
		f.verdict[class], f.reason[class] = -1, why
	}
}

// classReason is why no node of n's class may take the group; "" when it may.
func (f *feasibility) classReason(n *model.Node) string {
	if len(f.job.Datacenters) > 0 && !slices.Contains(f.job.Datacenters, n.Datacenter) {
		return "datacenter in " + strings.Join(f.job.Datacenters, ", ")
	}
	if t := f.group.UntoleratedTaint(n); t != nil {
		return "taint " + t.String()
	}
	if d := n.MissingDriver(f.group); d != "" {
		return "lacks driver " + d
	}
	if c := firstBroken(f.shared, n); c != nil {
		return c.String()
	}
	if len(n.DeviceChoices(&f.group.Ask)) == 0 {
		return "devices " + describeDevices(&f.group.Ask)
	}
	return ""
}

func (f *feasibility) escapedReason(n *model.Node) string {
	if c := firstBroken(f.escaped, n); c != nil {
		return c.String()
	}
	return ""
}

// classes tells for every class seen whether it is feasible.
func (f *feasibility) classes(snap *state.Snapshot) map[uint64]bool {
	seen := map[uint64]bool{}
	for class, v := range f.verdict {
		if v != 0 {
			seen[snap.ClassKey(int32(class))] = v > 0
		}
	}
	return seen
}

func firstBroken(cs []*model.Constraint, n *model.Node) *model.Constraint {
	for _, c := range cs {
		if value, set := n.Attribute(c.Attribute); !c.Holds(value, set) {
			return c
		}
	}
	return nil
}

func describeDevices(ask *model.Ask) string {
	parts := make([]string, len(ask.Devices))
	for i, d := range ask.Devices {
		parts[i] = fmt.Sprintf("%s × %d", d.ID, d.Count)
	}
	return strings.Join(parts, ", ")
}
