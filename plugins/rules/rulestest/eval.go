package rulestest

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/sdk/fmath"
)

// Eval returns the value of an expression, and false if it has none.
func (e *Env) Eval(n *ir.Node) (Value, bool) {
	switch n.Op {
	case ir.Const:
		return Value{N: n.N, X: n.X, S: n.Text}, true
	case ir.Now:
		return Value{N: e.now}, true
	case ir.Load:
		return e.field(n.Field), true
	case ir.LoadMap:
		v, ok := e.maps[schema.Maps[n.Field].Name][n.Key]
		return v, ok || !schema.Maps[n.Field].Optional
	case ir.HasKey:
		_, ok := e.maps[schema.Maps[n.Field].Name][n.Key]
		return truth(ok), true
	case ir.And, ir.Or:
		return e.logical(n)
	case ir.Cond:
		v, ok := e.Eval(n.Args[0])
		if !ok {
			return Value{}, false
		}
		return e.Eval(n.Args[2-v.N])
	}
	args := make([]Value, len(n.Args))
	for i, a := range n.Args {
		v, ok := e.Eval(a)
		if !ok {
			return Value{}, false
		}
		args[i] = v
	}
	return apply(n, args)
}

func truth(b bool) Value {
	if b {
		return Value{N: 1}
	}
	return Value{}
}

// logical returns the result of && or ||: false or true if one side decides.
func (e *Env) logical(n *ir.Node) (Value, bool) {
	decides := truth(n.Op == ir.Or)
	a, okA := e.Eval(n.Args[0])
	b, okB := e.Eval(n.Args[1])
	if okA && a == decides || okB && b == decides {
		return decides, true
	}
	return truth(n.Op == ir.And), okA && okB
}

// apply returns the result of an operation on values.
func apply(n *ir.Node, args []Value) (Value, bool) {
	a := args[0]
	switch n.Op {
	case ir.Not:
		return truth(a.N == 0), true
	case ir.In:
		return truth(slices.Contains(args[1:], a)), true
	case ir.StartsWith:
		return truth(strings.HasPrefix(a.S, args[1].S)), true
	case ir.EndsWith:
		return truth(strings.HasSuffix(a.S, args[1].S)), true
	case ir.Contains:
		return truth(strings.Contains(a.S, args[1].S)), true
	case ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge:
		return comparison(n, a, args[1])
	case ir.ToInt:
		return truncated(a.X)
	case ir.ToDouble:
		return Value{X: float64(a.N)}, true
	case ir.Whole:
		return Value{N: a.N / n.N}, true
	}
	first := n.Args[0].Type
	switch {
	case n.Op == ir.Div && first == schema.Duration:
		return Value{X: float64(a.N) / float64(args[1].N)}, true
	case n.Op == ir.Mul && first == schema.Duration && n.Args[1].Type == schema.Double:
		return truncated(float64(a.N) * args[1].X)
	case n.Type == schema.Double:
		return Value{X: double(n.Op, a.X, args[len(args)-1].X)}, true
	}
	return whole(n.Op, a.N, args[len(args)-1].N)
}

func comparison(n *ir.Node, a, b Value) (Value, bool) {
	switch n.Args[0].Type {
	case schema.String, schema.Bool:
		return truth((a == b) == (n.Op == ir.Eq)), true
	case schema.Double:
		if n.Op == ir.Eq || n.Op == ir.Ne {
			return truth((a.X == b.X) == (n.Op == ir.Eq)), true
		}
		if math.IsNaN(a.X) || math.IsNaN(b.X) {
			return Value{}, false
		}
		return truth(compare(n.Op, cmp.Compare(a.X, b.X))), true
	}
	return truth(compare(n.Op, cmp.Compare(a.N, b.N))), true
}

// compare returns the result of a comparison of two values by their order.
func compare(op ir.Op, order int) bool {
	switch op {
	case ir.Eq:
		return order == 0
	case ir.Ne:
		return order != 0
	case ir.Lt:
		return order < 0
	case ir.Le:
		return order <= 0
	case ir.Gt:
		return order > 0
	}
	return order >= 0
}

func truncated(x float64) (Value, bool) {
	if math.IsNaN(x) || x <= -(1<<63) || x >= 1<<63 {
		return Value{}, false
	}
	return Value{N: int64(x)}, true
}

func double(op ir.Op, x, y float64) float64 {
	switch op {
	case ir.Neg:
		return -x
	case ir.Add:
		return x + y
	case ir.Sub:
		return x - y
	case ir.Mul:
		return x * y
	case ir.Div:
		return x / y
	case ir.Min:
		return min(x, y)
	case ir.Max:
		return max(x, y)
	case ir.Abs:
		return math.Abs(x)
	case ir.Floor:
		return math.Floor(x)
	case ir.Ceil:
		return math.Ceil(x)
	case ir.Sqrt:
		return math.Sqrt(x)
	case ir.Exp:
		return fmath.Exp(x)
	case ir.Log:
		return fmath.Log(x)
	}
	return fmath.Pow(x, y)
}

func whole(op ir.Op, x, y int64) (Value, bool) {
	switch op {
	case ir.Min:
		return Value{N: min(x, y)}, true
	case ir.Max:
		return Value{N: max(x, y)}, true
	case ir.Neg:
		x, y, op = 0, x, ir.Sub
	case ir.Abs:
		if x >= 0 {
			return Value{N: x}, true
		}
		x, y, op = 0, x, ir.Sub
	}
	v, ok := ir.Whole64(op, x, y)
	return Value{N: v}, ok
}
