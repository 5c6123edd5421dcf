package rules

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/link"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

// Check checks the names, types and fuel of rules. Errors are of type *Error and list every
// problem.
func Check(s *Source) (*ir.Program, error) {
	c := checker{}
	p := &ir.Program{Name: s.Name, Delta: s.Delta}
	valid := &Source{Name: s.Name, Delta: s.Delta, Limits: s.Limits} // the entries without a problem
	if s.Eligible != nil {
		if p.Eligible = c.expression(s.Eligible, schema.Eligible, "a condition (bool)", schema.Bool); p.Eligible != nil {
			valid.Eligible = s.Eligible
		}
	}
	sortable := func(entries []Expression, scope schema.Scope) (roots []*ir.Node, list []Expression) {
		for i := range entries {
			if root := c.sortable(&entries[i], scope); root != nil {
				roots, list = append(roots, root), append(list, entries[i])
			}
		}
		return roots, list
	}
	p.Order, valid.Order = sortable(s.Order, schema.Order)
	p.Option, valid.Option = sortable(s.Option, schema.Option)
	if len(p.Roots()) > 0 {
		c.fuel(valid, p) // with fewer entries, rules take less fuel
	}
	if len(c.problems) > 0 {
		return nil, newError(c.problems)
	}
	return p, nil
}

// Compile returns the module of rules. The same rules produce the same bytes.
func Compile(s *Source) ([]byte, error) {
	p, err := Check(s)
	if err != nil {
		return nil, err
	}
	module, err := link.Module(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return module, nil
}

// checker checks expressions and collects their problems.
type checker struct{ problems []Problem }

// sortable checks an expression by which candidates or options are sorted.
func (c *checker) sortable(e *Expression, scope schema.Scope) *ir.Node {
	return c.expression(e, scope, "a value that can be sorted (int, double, duration, timestamp or bool)",
		schema.Int, schema.Double, schema.Duration, schema.Timestamp, schema.Bool)
}

// expression checks one expression. Its type must be among those that are accepted.
func (c *checker) expression(e *Expression, scope schema.Scope, want string, accepted ...schema.Type) *ir.Node {
	env, err := environment(scope)
	if err != nil {
		c.add(e, 0, err.Error(), "")
		return nil
	}
	parsed, issues := env.Parse(e.Text)
	if issues.Err() != nil {
		c.issues(e, scope, issues)
		c.names(e, scope)
		return nil
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		c.issues(e, scope, issues)
		c.literals(e, parsed.NativeRep())
		return nil
	}
	before := len(c.problems)
	v := converter{checker: c, source: e, checked: checked.NativeRep()}
	root := v.convert(v.checked.Expr())
	if len(c.problems) > before {
		return nil
	}
	if !slices.Contains(accepted, root.Type) {
		c.add(e, 0, fmt.Sprintf("the type is %s; expected %s", root.Type, want), "")
		return nil
	}
	if root.Never() {
		c.add(e, 0, neverReason, neverHint)
		return nil
	}
	return root
}

// The problem of an expression that has no value for any candidate.
const (
	neverReason = "the expression never has a value"
	neverHint   = "a division by zero has none, nor a constant int or duration beyond 64 bits"
)

// names reports the unknown names of an expression with a syntax error, of which nothing else
// can be checked.
func (c *checker) names(e *Expression, scope schema.Scope) {
	for _, r := range syntax.References(e.Text) {
		if scopesOf(r.Name)&scope == 0 {
			reason, hint := explainer{scope, e}.Undeclared(r.Name, false)
			c.add(e, r.Offset, reason, hint)
		}
	}
}

// literals reports the durations and timestamps of an expression that are invalid, and keys that
// are not constants, if the expression has no types.
func (c *checker) literals(e *Expression, parsed *ast.AST) {
	v := converter{checker: c, source: e, checked: parsed}
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		if part.Kind() != ast.CallKind {
			return
		}
		call := part.AsCall()
		t, isSpan := spans[call.FunctionName()]
		switch {
		case isSpan && len(call.Args()) == 1 && call.Args()[0].Kind() == ast.LiteralKind:
			v.span(t, call.Args()[0])
		case call.FunctionName() == operators.Index && len(call.Args()) == 2:
			v.constantKey(call.Args()[1])
		}
	}))
}

func (c *checker) add(e *Expression, offset int, reason, hint string) {
	c.problems = append(c.problems, Problem{Place: e.place(offset), Entry: e.Entry, Reason: reason, Hint: hint})
}

// issues reports the problems that cel-go found.
func (c *checker) issues(e *Expression, scope schema.Scope, issues *cel.Issues) {
	_, balanced := splitOutside(e.Text, ',')
	for _, p := range syntax.Problems(e.Text, issues, explainer{scope, e}) {
		if e.bare && !balanced {
			p.Hint = "in a list in brackets a comma ends the entry: quote an expression that contains one"
		}
		c.add(e, p.Offset, p.Reason, p.Hint)
	}
}
