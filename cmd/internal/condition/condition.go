package condition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"github.com/cede-scheduler/cede/core/sim/statistics"
	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

// ErrAbsent means that a condition uses a metric that the runs do not contain.
var ErrAbsent = errors.New("metric not present in the runs")

// A SyntaxError describes an invalid condition.
type SyntaxError struct {
	Text    string
	Problem syntax.Problem // the first one
}

func (e *SyntaxError) Error() string {
	out := fmt.Sprintf("column %d: %s\n%s", e.Problem.Offset+1, e.Problem.Reason, syntax.Excerpt(e.Text, e.Problem.Offset))
	if e.Problem.Hint != "" {
		out += "\n  " + e.Problem.Hint
	}
	return out
}

// Data are the measured values of policies: of a *compare.Document, or of a trial.
type Data interface {
	// Interval returns a metric of one policy, and false if it is absent.
	Interval(metric, policy string) (statistics.Interval, bool)
	// Difference returns the paired difference p - q, and false if it is absent.
	Difference(metric, p, q string) (statistics.Difference, bool)
	// Metrics returns the names of the metrics that are present.
	Metrics() []string
}

// An Expression is a condition on a comparison.
type Expression struct {
	text    string
	checked *cel.Ast
}

// Parse parses a condition. policies are the policies that will be compared. It returns a
// *SyntaxError if the text is malformed, or if it names an unknown policy or metric, or a
// metric without its part, so that these errors are reported before the runs start.
func Parse(text string, policies []string) (*Expression, error) {
	return parse(text, policies, false)
}

// parse parses a condition of a comparison or of a trial.
func parse(text string, policies []string, isTrial bool) (*Expression, error) {
	env, err := environment(&evaluation{})
	if err != nil {
		return nil, err
	}
	fail := func(p syntax.Problem) error { return &SyntaxError{text, p} }
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		first := syntax.Problems(text, issues, explainer{})[0]
		first.Hint = cmp.Or(first.Hint, formerSyntax(text))
		return nil, fail(first)
	}
	r := resolver{text: text, policies: policies, ast: parsed.NativeRep(), factory: ast.NewExprFactory(), isTrial: isTrial}
	if r.resolve(r.ast.Expr()); r.problem != nil {
		return nil, fail(*r.problem)
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, fail(syntax.Problems(text, issues, explainer{})[0])
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return nil, fail(syntax.Problem{Reason: "expected a condition, found a " + typeName(checked.OutputType()), Hint: "add a comparison: victims(nomad) > 10"})
	}
	return &Expression{text, checked}, nil
}

func typeName(t *cel.Type) string {
	if t.IsExactType(cel.DoubleType) {
		return "number"
	}
	return t.String()
}

// formerSyntax returns the form in CEL of the operators that conditions had before they
// were CEL.
func formerSyntax(text string) string {
	for _, f := range [][2]string{
		{"??", "write x.orValue(y) in place of x ?? y"},
		{"%", "write 0.9 in place of 90%"},
	} {
		if strings.Contains(text, f[0]) {
			return f[1]
		}
	}
	return "quote a metric or policy with other characters: metric('queueDelay.75.p99', nomad)"
}

func (e *Expression) String() string { return e.text }

// Metrics returns the names of the metrics that the condition reads, in order and without
// duplicates.
func (e *Expression) Metrics() (names []string) {
	ast.PostOrderVisit(e.checked.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind || !slices.Contains([]string{named, low, high, worse, better}, x.AsCall().FunctionName()) {
			return
		}
		if name, ok := x.AsCall().Args()[0].AsLiteral().(types.String); ok && !slices.Contains(names, string(name)) {
			names = append(names, string(name))
		}
	}))
	return names
}

// Holds evaluates the condition. It also returns the values of its operands, one per
// line, in the order of the expression. It returns an error that wraps ErrAbsent if a
// value is missing.
func (e *Expression) Holds(d Data) (bool, []string, error) {
	in := &evaluation{data: d}
	env, err := environment(in)
	if err != nil {
		return false, nil, err
	}
	program, err := env.Program(e.checked)
	if err != nil {
		return false, nil, err
	}
	v, _, err := program.Eval(cel.NoVars())
	if err != nil {
		return false, in.operands, e.located(err)
	}
	return v == types.True, in.operands, nil
}

// located adds the position of an operator without a value.
func (e *Expression) located(err error) error {
	failed, ok := errors.AsType[*types.Err](err)
	if !ok || errors.Is(err, ErrAbsent) {
		return err
	}
	at, _ := e.checked.NativeRep().SourceInfo().GetOffsetRange(failed.NodeID())
	return fmt.Errorf("column %d: %w", at.Start+1, err)
}

// evaluation is one evaluation of an expression.
type evaluation struct {
	data     Data
	operands []string
}

func (in *evaluation) record(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(in.operands, line) {
		in.operands = append(in.operands, line)
	}
}
