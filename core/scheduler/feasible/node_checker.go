package feasible

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A NodeChecker reports whether nodes may take a group by their own properties,
// independent of allocations. The answer is computed once per node class. Constraints
// on node.id escape the classes and are evaluated per node. Invariant: nodes of one
// class have the same answer, apart from constraints that escape.
type NodeChecker struct {
	// Within restricts the check to a topology domain; nil: no restriction.
	Within *Domain
	// ToStay excludes nodes with a taint that would end the allocation's stay later. Set it
	// before the first check.
	ToStay bool

	job     *model.Job
	group   *model.Group
	status  []int8   // by class: 0 unknown, 1 feasible, -1 infeasible
	reason  []string // by class: why it is infeasible
	escaped []*model.Constraint
	shared  []*model.Constraint
	last    []evaluated // by position in shared
}

// evaluated is the last evaluation of a constraint. Classes differ by few attributes, so that most
// of them have the value of the class before, and versions and patterns are not parsed again.
type evaluated struct {
	value            string
	done, set, holds bool
}

// NewNodeChecker returns a checker for a group in a cluster with so many node classes.
func NewNodeChecker(g *model.Group, classes int) *NodeChecker {
	return (&NodeChecker{}).Reset(g, classes)
}

// Reset prepares the checker for another group and reuses its memory.
func (c *NodeChecker) Reset(g *model.Group, classes int) *NodeChecker {
	c.job, c.group, c.escaped, c.shared, c.Within = g.Job, g, c.escaped[:0], c.shared[:0], nil
	c.ToStay = false
	c.status, c.reason = Resize(c.status, classes), Resize(c.reason, classes)
	clear(c.status)
	for i := range g.Constraints {
		switch x := &g.Constraints[i]; {
		case x.Operator.CountsAllocations(): // Rules checks it
		case x.Attribute == model.AttributeNodeID:
			c.escaped = append(c.escaped, x)
		default:
			c.shared = append(c.shared, x)
		}
	}
	c.last = Resize(c.last, len(c.shared))
	clear(c.last)
	return c
}

// Feasible reports whether the node at position i of a chunk may take the group.
func (c *NodeChecker) Feasible(chunk *state.Chunk, i int) bool {
	class := chunk.Class(i)
	if c.status[class] == 0 {
		c.checkClass(class, chunk.Node(i))
	}
	return c.status[class] > 0 && (len(c.escaped) == 0 || firstViolated(c.escaped, chunk.Node(i)) == nil) &&
		(c.Within == nil || c.Within.Contains(chunk.Node(i)))
}

// checkClass decides for the class of a node, once.
func (c *NodeChecker) checkClass(class int32, n *model.Node) {
	c.status[class] = 1
	if why := c.infeasibleReason(n); why != "" {
		c.status[class], c.reason[class] = -1, why
	}
}

// infeasibleReason returns why no node of n's class may take the group, or "".
func (c *NodeChecker) infeasibleReason(n *model.Node) string {
	if len(c.job.Datacenters) > 0 && !slices.Contains(c.job.Datacenters, n.Datacenter) {
		return "datacenter in " + strings.Join(c.job.Datacenters, ", ")
	}
	if t := c.group.UntoleratedTaint(n); t != nil {
		return "taint " + t.String()
	}
	if _, t := c.group.NoExecuteAt(n, 0); t != nil && c.ToStay {
		return "taint " + t.String() + " for a limited time"
	}
	if d := n.MissingDriver(c.group); d != "" {
		return "lacks driver " + d
	}
	for i, x := range c.shared {
		value, set := n.Attribute(x.Attribute)
		if known := &c.last[i]; !known.done || known.value != value || known.set != set {
			*known = evaluated{value, true, set, x.Holds(value, set)}
		}
		if !c.last[i].holds {
			return x.String()
		}
	}
	if len(n.DeviceChoices(&c.group.Ask)) == 0 {
		return "devices " + describeDevices(&c.group.Ask)
	}
	return ""
}

// Reason returns why an infeasible node that Feasible has checked may not take
// the group. byClass reports whether that holds for all nodes of its class.
func (c *NodeChecker) Reason(chunk *state.Chunk, i int) (reason string, byClass bool) {
	if class := chunk.Class(i); c.status[class] < 0 {
		return c.reason[class], true
	}
	if x := firstViolated(c.escaped, chunk.Node(i)); x != nil {
		return x.String(), false
	}
	return "", false
}

// ClassReason returns why the nodes of an infeasible class may not take the group.
func (c *NodeChecker) ClassReason(class int) string { return c.reason[class] }

// Escapes reports whether node classes alone do not decide feasibility.
func (c *NodeChecker) Escapes() bool { return len(c.escaped) > 0 }

// Classes returns, by key, whether each class checked so far is feasible.
func (c *NodeChecker) Classes(snap *state.Snapshot) map[uint64]bool {
	checked := map[uint64]bool{}
	for class, status := range c.status {
		if status != 0 {
			checked[snap.ClassKey(int32(class))] = status > 0
		}
	}
	return checked
}

// firstViolated returns the first constraint that a node violates, or nil.
func firstViolated(list []*model.Constraint, n *model.Node) *model.Constraint {
	for _, c := range list {
		if value, set := n.Attribute(c.Attribute); !c.Holds(value, set) {
			return c
		}
	}
	return nil
}

// describeDevices formats the requested devices for an explanation.
func describeDevices(ask *model.Ask) string {
	parts := make([]string, len(ask.Devices))
	for i, d := range ask.Devices {
		parts[i] = fmt.Sprintf("%s × %d", d.ID, d.Count)
	}
	return strings.Join(parts, ", ")
}

// Resize returns s with length n and reuses its memory if that suffices. The
// elements are not cleared.
func Resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
