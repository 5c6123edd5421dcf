package ir

import "github.com/cede-scheduler/cede/plugins/rules/schema"

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
