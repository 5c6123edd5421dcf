package rules

import (
	"fmt"
	"time"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// operations maps operators and functions whose arguments are converted one by one.
var operations = map[string]ir.Op{
	operators.LogicalAnd: ir.And, operators.LogicalOr: ir.Or, operators.LogicalNot: ir.Not, operators.Conditional: ir.Cond,
	operators.Equals: ir.Eq, operators.NotEquals: ir.Ne, operators.Less: ir.Lt, operators.LessEquals: ir.Le,
	operators.Greater: ir.Gt, operators.GreaterEquals: ir.Ge,
	operators.Add: ir.Add, operators.Subtract: ir.Sub, operators.Multiply: ir.Mul, operators.Divide: ir.Div,
	operators.Modulo: ir.Mod, operators.Negate: ir.Neg,
	"startsWith": ir.StartsWith, "endsWith": ir.EndsWith, "contains": ir.Contains,
	"min": ir.Min, "max": ir.Max, "abs": ir.Abs, "floor": ir.Floor, "ceil": ir.Ceil,
	"sqrt": ir.Sqrt, "exp": ir.Exp, "log": ir.Log, "pow": ir.Pow,
}

// units maps functions of a duration to their units.
var units = map[string]time.Duration{
	"getHours": time.Hour, "getMinutes": time.Minute, "getSeconds": time.Second, "getMilliseconds": time.Millisecond,
}

// spans maps functions of a text to their types.
var spans = map[string]schema.Type{"duration": schema.Duration, "timestamp": schema.Timestamp}

func (v *converter) call(e ast.Expr) *ir.Node {
	c := e.AsCall()
	name, list := c.FunctionName(), c.Args()
	if c.IsMemberFunction() {
		list = append([]ast.Expr{c.Target()}, list...)
	}
	switch name {
	case operators.Index:
		key, _ := v.constantKey(list[1])
		return v.key(e, list[0], key, false)
	case operators.In:
		return v.in(e, list[0], list[1])
	case "duration", "timestamp":
		return v.span(spans[name], list[0])
	case "int", "double":
		return v.conversion(e, name, v.convert(list[0]))
	}
	args, before := make([]*ir.Node, len(list)), len(v.problems)
	for i, a := range list {
		args[i] = v.convert(a)
	}
	if unit, ok := units[name]; ok && len(args) == 1 && args[0].Type == schema.Duration {
		return &ir.Node{Op: ir.Whole, Type: schema.Int, Args: args, N: int64(unit)}
	}
	op, ok := operations[name]
	result, known := typeOf(v.checked.GetType(e.ID()))
	isAvailable := ok && known && (result != schema.String || op != ir.Add && op != ir.Sub)
	if !isAvailable && len(v.problems) > before {
		return &ir.Node{Op: ir.Const, Type: result} // the arguments are the reason
	}
	if !isAvailable {
		return v.unsupported(e, fmt.Sprintf("%s is not available in rules", shownName(name, result)), "docs/reference/rules.md lists the functions")
	}
	return v.operation(&ir.Node{Op: op, Type: result, Args: args}, e)
}

func shownName(name string, result schema.Type) string {
	if name == operators.Add && result == schema.String {
		return "the concatenation of texts"
	}
	if symbol, ok := operators.FindReverse(name); ok {
		return symbol
	}
	return name
}

// operation puts the arguments of arithmetic into the order of package ir, and refuses
// comparisons that it does not have.
func (v *converter) operation(n *ir.Node, e ast.Expr) *ir.Node {
	first := n.Args[0].Type
	switch {
	case n.Op == ir.Mul && n.Type == schema.Duration && first != schema.Duration,
		n.Op == ir.Add && n.Type == schema.Timestamp && first == schema.Duration:
		n.Args[0], n.Args[1] = n.Args[1], n.Args[0]
	case n.Op >= ir.Eq && n.Op <= ir.Ge && first != n.Args[1].Type:
		return v.unsupported(e, fmt.Sprintf("%s and %s cannot be compared", first, n.Args[1].Type), "")
	case n.Op >= ir.Lt && n.Op <= ir.Ge && (first == schema.String || first == schema.Bool):
		return v.unsupported(e, fmt.Sprintf("values of type %s have no order in rules", first), "use == and !=")
	}
	return n
}

// conversion converts between int and double.
func (v *converter) conversion(e ast.Expr, to string, of *ir.Node) *ir.Node {
	switch {
	case of.Type.String() == to:
		return of
	case to == "int" && of.Type == schema.Double:
		return &ir.Node{Op: ir.ToInt, Type: schema.Int, Args: []*ir.Node{of}}
	case to == "double" && of.Type == schema.Int:
		return &ir.Node{Op: ir.ToDouble, Type: schema.Double, Args: []*ir.Node{of}}
	}
	return v.unsupported(e, fmt.Sprintf("%s(%s) is not available in rules", to, of.Type), "divide durations, or use getSeconds(): victim.age / duration('1h')")
}

// in converts X in [A, B], and 'KEY' in MAP.
func (v *converter) in(e, of, where ast.Expr) *ir.Node {
	if where.Kind() != ast.ListKind {
		key, ok := v.constantKey(of)
		if !ok {
			return whole(schema.Bool, 0)
		}
		return v.key(e, where, key, true)
	}
	n := &ir.Node{Op: ir.In, Type: schema.Bool, Args: []*ir.Node{v.convert(of)}}
	for _, element := range where.AsList().Elements() {
		c := v.convert(element)
		if c.Op == ir.Neg && c.Args[0].Op == ir.Const && !c.Never() { // -1 is the negation of a constant
			c = whole(c.Type, -c.Args[0].N)
		}
		switch {
		case c.Never():
			v.unsupported(element, neverReason, neverHint)
		case c.Op != ir.Const:
			v.unsupported(element, "the elements of a list must be constants", "")
		case c.Type != n.Args[0].Type:
			v.unsupported(element, fmt.Sprintf("%s and %s cannot be compared", n.Args[0].Type, c.Type), "")
		case c.Type == schema.Double:
			v.unsupported(element, "a double cannot be looked up in a list", "compare it with < and >")
		}
		n.Args = append(n.Args, c)
	}
	return n
}
