package ir

import (
	"math"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

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
		if steps, ok := c.steps(); ok {
			list = append(list, steps...)
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

// mirrored maps a comparison to that with its sides exchanged.
var mirrored = map[Op]Op{Eq: Eq, Ne: Ne, Lt: Gt, Le: Ge, Gt: Lt, Ge: Le}

// steps returns the turns of a comparison of whole units with a constant, such as
// victim.age.getHours() > 2: the duration itself is linear in time. It returns false if
// the expression is not such a comparison.
func (n *Node) steps() ([]Turn, bool) {
	op, units, c := n.Op, n.Args[0], n.Args[1]
	if units.Op == Const {
		op, units, c = mirrored[op], c, units
	}
	if units.Op != Whole || c.Op != Const {
		return nil, false
	}
	slope, ok := units.Args[0].slope()
	if !ok || slope == 0 {
		return nil, ok
	}
	var list []Turn
	if op != Gt && op != Le { // changes if the number reaches c
		list = units.reaches(list, c.N, slope)
	}
	if op != Lt && op != Ge && c.N < math.MaxInt64 { // changes if the number exceeds c
		list = units.reaches(list, c.N+1, slope)
	}
	return list, true
}

// reaches adds the turn at which whole units reach a number, unless no duration does. The
// units are rounded towards zero: a negative duration reaches a number one nanosecond after
// the lower number.
func (n *Node) reaches(list []Turn, number, slope int64) []Turn {
	op := Ge
	if number <= 0 {
		op = Gt
		if number == math.MinInt64 {
			return list
		}
		number--
	}
	limit, ok := Whole64(Mul, number, n.N)
	if !ok {
		return list
	}
	return append(list, Turn{
		Node:  &Node{Op: op, Type: schema.Bool, Args: []*Node{n.Args[0], {Op: Const, Type: schema.Duration, N: limit}}},
		Slope: slope,
	})
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
