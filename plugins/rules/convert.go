package rules

import (
	"fmt"
	"time"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// converter converts a checked expression to the form that package link compiles.
type converter struct {
	*checker
	source  *Expression
	checked *ast.AST
}

// unsupported reports a part of CEL that rules do not have. It returns a node of the type
// of the part, so that the conversion continues and reports no consequences.
func (v *converter) unsupported(e ast.Expr, what, hint string) *ir.Node {
	at, _ := v.checked.SourceInfo().GetOffsetRange(e.ID())
	v.add(v.source, int(at.Start), what, hint)
	t, _ := typeOf(v.checked.GetType(e.ID()))
	return &ir.Node{Op: ir.Const, Type: t}
}

func (v *converter) convert(e ast.Expr) *ir.Node {
	if ref, ok := v.checked.ReferenceMap()[e.ID()]; ok && ref.Name != "" && ref.Value == nil {
		return v.name(e, ref.Name)
	}
	switch e.Kind() {
	case ast.LiteralKind:
		return v.literal(e)
	case ast.SelectKind:
		s := e.AsSelect()
		return v.key(e, s.Operand(), s.FieldName(), s.IsTestOnly())
	case ast.CallKind:
		return v.call(e)
	case ast.ListKind:
		return v.unsupported(e, "a list is allowed only after in", "write victim.namespace in ['a', 'b']")
	}
	return v.unsupported(e, "this form of CEL is not available in rules", "docs/reference/rules.md describes the language")
}

func (v *converter) name(e ast.Expr, name string) *ir.Node {
	if name == schema.Now {
		return &ir.Node{Op: ir.Now, Type: schema.Timestamp}
	}
	for _, s := range schema.Spans {
		if s.Name == name {
			return &ir.Node{Op: ir.Sub, Type: schema.Duration, Args: []*ir.Node{{Op: ir.Now, Type: schema.Timestamp}, load(schema.Lookup(s.Of))}}
		}
	}
	if i := schema.Lookup(name); i >= 0 {
		return load(i)
	}
	if schema.LookupMap(name) >= 0 {
		return v.unsupported(e, name+" needs a key", fmt.Sprintf("write %s['KEY']", name))
	}
	return v.unsupported(e, fmt.Sprintf("%s has no value", name), "")
}

func load(field int) *ir.Node {
	return &ir.Node{Op: ir.Load, Type: schema.Fields[field].Type, Field: field}
}

func (v *converter) literal(e ast.Expr) *ir.Node {
	switch c := e.AsLiteral().(type) {
	case types.Bool:
		n := &ir.Node{Op: ir.Const, Type: schema.Bool}
		if c {
			n.N = 1
		}
		return n
	case types.Int:
		return whole(schema.Int, int64(c))
	case types.Double:
		return &ir.Node{Op: ir.Const, Type: schema.Double, X: float64(c)}
	case types.String:
		return &ir.Node{Op: ir.Const, Type: schema.String, Text: string(c)}
	}
	return v.unsupported(e, "values of this type are not available in rules", "use int, double, string, bool, duration('10m') or timestamp('2026-01-02T15:04:05Z')")
}

func whole(t schema.Type, n int64) *ir.Node { return &ir.Node{Op: ir.Const, Type: t, N: n} }

// key returns the value of a key of a map, or whether the map has it.
func (v *converter) key(e, operand ast.Expr, key string, test bool) *ir.Node {
	ref, ok := v.checked.ReferenceMap()[operand.ID()]
	if !ok || schema.LookupMap(ref.Name) < 0 {
		return v.unsupported(e, "only names of the schema have keys", "docs/reference/rules.md lists the names")
	}
	i := schema.LookupMap(ref.Name)
	n := &ir.Node{Op: ir.LoadMap, Type: schema.Maps[i].Type, Field: i, Key: key}
	if test {
		n.Op, n.Type = ir.HasKey, schema.Bool
		if !schema.Maps[i].Optional {
			return v.unsupported(e, ref.Name+" has a value for every key", "compare it with 0.0")
		}
	}
	return n
}

// constantKey returns a key that is written in quotes.
func (v *converter) constantKey(e ast.Expr) (string, bool) {
	if e.Kind() == ast.LiteralKind {
		if s, ok := e.AsLiteral().(types.String); ok {
			return string(s), true
		}
	}
	v.unsupported(e, "a key must be written in quotes", "")
	return "", false
}

// span converts duration('10m') and timestamp('2026-01-02T15:04:05Z').
func (v *converter) span(t schema.Type, argument ast.Expr) *ir.Node {
	text, ok := v.constantKey(argument)
	if !ok {
		return whole(t, 0)
	}
	if t == schema.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			v.unsupported(argument, fmt.Sprintf("invalid duration %q", text), "write a number with h, m, s or ms, up to 2562047h, such as '1h30m'")
		}
		return whole(t, int64(d))
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !time.Unix(0, at.UnixNano()).Equal(at) {
		v.unsupported(argument, fmt.Sprintf("invalid timestamp %q", text), "write a time between 1678 and 2262 such as '2026-01-02T15:04:05Z'")
	}
	return whole(t, at.UnixNano())
}
