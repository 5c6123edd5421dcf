package rules

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"

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
	if s.Eligible != nil {
		p.Eligible = c.expression(s.Eligible, schema.Eligible, "a condition (bool)", schema.Bool)
	}
	for i := range s.Order {
		p.Order = append(p.Order, c.sortable(&s.Order[i], schema.Order))
	}
	for i := range s.Option {
		p.Option = append(p.Option, c.sortable(&s.Option[i], schema.Option))
	}
	if len(c.problems) == 0 && len(p.Roots()) > 0 {
		c.fuel(s, p)
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
	checked, issues := env.Compile(e.Text)
	if issues.Err() != nil {
		c.issues(e, scope, issues)
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

func (c *checker) add(e *Expression, offset int, reason, hint string) {
	c.problems = append(c.problems, Problem{Place: e.place(offset), Entry: e.Entry, Reason: reason, Hint: hint})
}

// issues reports the problems that cel-go found.
func (c *checker) issues(e *Expression, scope schema.Scope, issues *cel.Issues) {
	_, balanced := splitOutside(e.Text, ',')
	for _, p := range syntax.Problems(e.Text, issues, explainer(scope)) {
		if e.bare && !balanced {
			p.Hint = "in a list in brackets a comma ends the entry: quote an expression that contains one"
		}
		c.add(e, p.Offset, p.Reason, p.Hint)
	}
}
