package ir

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// Partial reports whether an expression can have no value: because of an overflow, a
// division by zero, an absent key, or the order of a number and NaN.
func (n *Node) Partial() bool {
	if n.partialSelf() {
		return true
	}
	for _, a := range n.Args {
		if a.Partial() {
			return true
		}
	}
	return false
}

// partialSelf reports whether the operation can have no value although its arguments do.
func (n *Node) partialSelf() bool {
	switch n.Op {
	case LoadMap:
		return schema.Maps[n.Field].Optional
	case Neg, Add, Sub:
		return n.Type.IsWhole() && n.Overflows()
	case Mul:
		return n.Type == schema.Duration && n.Args[1].Type == schema.Double || n.Type.IsWhole() && n.Overflows()
	case Div:
		return n.Type.IsWhole()
	case Mod, ToInt:
		return true
	case Abs:
		return n.Type.IsWhole()
	case Lt, Le, Gt, Ge:
		return n.Args[0].Type == schema.Double
	}
	return false
}

// Never reports whether an expression is known to have no value for any candidate: it
// divides by the constant zero, or computes with constants beyond 64 bits.
func (n *Node) Never() bool {
	switch n.Op {
	case And, Or: // a side that has a value may decide alone
		return n.Args[0].Never() && n.Args[1].Never()
	case Cond:
		return n.Args[0].Never() || n.Args[1].Never() && n.Args[2].Never()
	}
	return slices.ContainsFunc(n.Args, (*Node).Never) || n.neverSelf()
}

// neverSelf reports whether the operation never has a value although its arguments do.
func (n *Node) neverSelf() bool {
	if n.Op == ToInt {
		x := n.Args[0]
		if x.Op == Neg {
			x = x.Args[0]
		}
		return x.Op == Const && !(math.Abs(x.X) < 1<<63)
	}
	if n.Op < Neg || n.Op > Mod && n.Op != Abs || !n.Type.IsWhole() || slices.ContainsFunc(n.Args, func(a *Node) bool { return !a.Type.IsWhole() }) {
		return false
	}
	a, b := n.Args[0].Range(), n.Args[len(n.Args)-1].Range()
	switch {
	case n.Op == Neg || n.Op == Abs:
		return a.High == math.MinInt64
	case (n.Op == Div || n.Op == Mod) && b == Range{}:
		return true
	case a.Low != a.High || b.Low != b.High:
		return false
	}
	_, ok := Whole64(n.Op, a.Low, b.Low)
	return !ok
}
