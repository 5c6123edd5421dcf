package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/link"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// Check checks the names and types of rules. Errors are of type *Error and list every
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
	if len(c.problems) > 0 {
		return nil, &Error{c.problems}
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
	return root
}

func (c *checker) add(e *Expression, offset int, reason, hint string) {
	c.problems = append(c.problems, Problem{Place: e.place(offset), Entry: e.Entry, Reason: reason, Hint: hint})
}

// issues reports the problems that cel-go found, in this project's words where they are
// about names and types.
func (c *checker) issues(e *Expression, scope schema.Scope, issues *cel.Issues) {
	type issue struct {
		offset         int
		reason, remedy string
	}
	var list []issue
	for _, err := range issues.Errors() {
		offset := offsetOf(e.Text, err.Location.Line(), err.Location.Column())
		reason, hint := firstLine(err.Message), ""
		switch {
		case strings.HasPrefix(reason, "undeclared reference"):
			offset, reason, hint = undeclared(e.Text, offset, scope)
		case strings.HasPrefix(reason, "found no matching overload"):
			reason, hint = noOverload(reason)
		case strings.HasPrefix(reason, "Syntax error:"):
			reason = "syntax error:" + strings.TrimPrefix(reason, "Syntax error:")
		case strings.Contains(reason, "limit") || strings.Contains(reason, "depth"):
			hint = fmt.Sprintf("an expression has at most %d operations, nested at most %d deep", MaxNodes, MaxDepth)
		}
		if next := (issue{offset, reason, hint}); !slices.Contains(list, next) {
			list = append(list, next)
		}
	}
	slices.SortStableFunc(list, func(a, b issue) int { return cmp.Compare(a.offset, b.offset) })
	for _, i := range list {
		c.add(e, i.offset, i.reason, i.remedy)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// offsetOf returns the position of a line, from 1, and a column, from 0, in characters.
func offsetOf(text string, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		before, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		offset += len([]rune(before)) + 1
		text = rest
	}
	return offset + max(column, 0)
}

// noOverload explains an operator or function with arguments of the wrong types.
func noOverload(message string) (reason, hint string) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(message, "found no matching overload for '"), "' applied to '")
	types := strings.NewReplacer("google.protobuf.", "", "Duration", "duration", "Timestamp", "timestamp").Replace(strings.TrimSuffix(rest, "'"))
	operator := strings.Trim(name, "_@")
	reason = fmt.Sprintf("%s cannot be applied to %s", operator, types)
	switch {
	case strings.Contains(types, "int") && strings.Contains(types, "double"):
		hint = "write 2.0 in place of 2, or convert: double(victim.priority)"
	case strings.Contains(types, "duration") && strings.Contains(types, "int"):
		hint = "write a duration as duration('10m')"
	case strings.Contains(types, "timestamp"):
		hint = "timestamps can be compared and subtracted: now - victim.start"
	}
	return reason, hint
}
