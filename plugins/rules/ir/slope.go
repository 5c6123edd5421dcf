package ir

import "github.com/cede-scheduler/cede/plugins/rules/schema"

// A Turn is a comparison whose result changes as time passes, and how its sides approach
// each other.
type Turn struct {
	*Node
	// Slope is the change of the left side minus the right side, per nanosecond. It is 0 if
	// the comparison is not linear in time.
	Slope int64
}

// Turns returns the comparisons of an expression that depend on time.
func (n *Node) Turns() []Turn {
	var list []Turn
	n.Walk(func(c *Node) {
		if c.Op < Eq || c.Op > Ge {
			return
		}
		left, right := c.Args[0], c.Args[1]
		if !left.readsTime() && !right.readsTime() {
			return
		}
		t := Turn{Node: c}
		a, okA := left.slope()
		b, okB := right.slope()
		if okA && okB {
			if t.Slope = a - b; t.Slope == 0 {
				return // both sides change alike
			}
		}
		list = append(list, t)
	})
	return list
}

// readsTime reports whether an expression changes as time passes.
func (n *Node) readsTime() bool {
	found := false
	n.Walk(func(c *Node) {
		found = found || c.Op == Now || c.is("preemptor.waiting") || c.is("victim.lostWork")
	})
	return found
}

// maxSlope bounds the factors that slope computes with.
const maxSlope = 1 << 30

// slope returns the change of a whole expression per nanosecond. It returns false if the
// expression is not linear in time. A checkpoint resets lost work, which only makes a
// recheck superfluous.
func (n *Node) slope() (int64, bool) {
	if !n.readsTime() {
		return 0, true
	}
	switch n.Op {
	case Now, Load:
		return 1, true
	case Neg:
		s, ok := n.Args[0].slope()
		return -s, ok
	case Add, Sub:
		if !n.Type.IsWhole() {
			return 0, false
		}
		a, okA := n.Args[0].slope()
		b, okB := n.Args[1].slope()
		if n.Op == Sub {
			b = -b
		}
		return a + b, okA && okB && within(a+b)
	case Mul:
		if n.Args[1].Type == schema.Double {
			return 0, false
		}
		for i, c := range n.Args {
			if other := n.Args[1-i]; c.Op == Const && within(c.N) {
				s, ok := other.slope()
				return s * c.N, ok && within(s*c.N)
			}
		}
	}
	return 0, false
}

func within(x int64) bool { return -maxSlope < x && x < maxSlope }
