package condition

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

// median is the same as no function: median(victims(nomad)).
const median = "median"

// resolver replaces the names of metrics and policies by texts, and whole numbers by
// doubles: victims(nomad) > 2 becomes metric('victims', 'nomad') > 2.0. It retains the
// first problem.
type resolver struct {
	text     string
	policies []string
	ast      *ast.AST
	factory  ast.ExprFactory
	isTrial  bool // metrics have the names of trials
	problem  *syntax.Problem
}

func (r *resolver) fail(e ast.Expr, reason, hint string) {
	if r.problem != nil {
		return
	}
	at, _ := r.ast.SourceInfo().GetOffsetRange(e.ID())
	offset := int(at.Start)
	if e.Kind() != ast.LiteralKind {
		_, offset, _ = syntax.Name(r.text, offset)
	}
	r.problem = &syntax.Problem{Offset: offset, Reason: reason, Hint: hint}
}

// resolve replaces names and numbers in an expression.
func (r *resolver) resolve(e ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
		if v, ok := e.AsLiteral().(types.Int); ok {
			e.SetKindCase(r.factory.NewLiteral(e.ID(), types.Double(v)))
		}
	case ast.CallKind:
		r.call(e)
	default:
		if name, ok := r.name(e); ok {
			r.fail(e, "expected METRIC(POLICY) or a number, found "+name, "name the policy: "+name+"(POLICY)")
		} else {
			r.fail(e, "this form of CEL is not available in conditions", "see: cede help fail-if")
		}
	}
}

func (r *resolver) call(e ast.Expr) {
	c := e.AsCall()
	switch name, _ := r.called(c); {
	case slices.Contains([]string{low, high, median}, name) && len(c.Args()) == 1:
		r.part(e, name)
		return
	case name == worse || name == better || name == named:
		r.names(c.Args())
		return
	case !isOperator(name) && len(c.Args()) == 1 && r.isMetric(name):
		r.measure(e, name)
		return
	case isKnown(name):
		r.fail(e, "expected "+name+"(POLICY)", "name one policy")
		return
	}
	if c.IsMemberFunction() {
		r.resolve(c.Target())
	}
	for _, a := range c.Args() {
		r.resolve(a)
	}
}

func isOperator(name string) bool { return name == "" || strings.ContainsAny(name, "_@?") }

// isMetric reports whether a call is about a metric, known or not: the other functions of
// one argument are few.
func (r *resolver) isMetric(name string) bool {
	return name != "abs" && !strings.HasSuffix(name, ".orValue")
}

// measure replaces METRIC(POLICY).
func (r *resolver) measure(e ast.Expr, metric string) {
	if reason, hint := r.unknownMetric(metric); reason != "" {
		r.fail(e, reason, hint)
		return
	}
	policy := e.AsCall().Args()[0]
	r.policy(policy)
	name := r.factory.NewLiteral(r.unusedID(), types.String(metric))
	e.SetKindCase(r.factory.NewCall(e.ID(), named, name, policy))
}

// unusedID returns an ID that no part of the expression has.
func (r *resolver) unusedID() int64 {
	id := ast.MaxID(r.ast)
	r.ast.SourceInfo().SetOffsetRange(id, ast.OffsetRange{})
	return id
}

// part replaces low(METRIC(POLICY)), and the others of this form.
func (r *resolver) part(e ast.Expr, part string) {
	of := e.AsCall().Args()[0]
	r.resolve(of)
	if r.problem != nil {
		return
	}
	if of.Kind() != ast.CallKind || of.AsCall().FunctionName() != named {
		r.fail(of, "expected METRIC(POLICY)", "write low(victims(nomad))")
		return
	}
	if part == median {
		part = named
	}
	e.SetKindCase(r.factory.NewCall(e.ID(), part, of.AsCall().Args()...))
}

// names replaces a metric and the policies after it.
func (r *resolver) names(args []ast.Expr) {
	for i, a := range args {
		if i > 0 {
			r.policy(a)
			continue
		}
		name, ok := r.name(a)
		if !ok {
			r.fail(a, "expected a metric", "quote it: 'queueDelay.75.p99'")
		} else if reason, hint := r.unknownMetric(name); reason != "" {
			r.fail(a, reason, hint)
		}
		a.SetKindCase(r.factory.NewLiteral(a.ID(), types.String(name)))
	}
}

func (r *resolver) policy(e ast.Expr) {
	name, ok := r.name(e)
	switch {
	case !ok:
		r.fail(e, "expected a policy", "quote it: 'P?key=value'")
	case !slices.Contains(r.policies, name):
		r.fail(e, "unknown policy "+name, syntax.DidYouMean(name, r.policies, "policies: "+strings.Join(r.policies, ", ")))
	}
	e.SetKindCase(r.factory.NewLiteral(e.ID(), types.String(name)))
}

// called returns the dotted name of a call: wastedWork.cpu of wastedWork.cpu(nomad).
func (r *resolver) called(c ast.CallExpr) (string, bool) {
	if !c.IsMemberFunction() {
		return c.FunctionName(), true
	}
	target, ok := r.name(c.Target())
	if !ok {
		return "", false
	}
	return target + "." + c.FunctionName(), true
}

// name returns a name with dots and hyphens, or a text in quotes.
func (r *resolver) name(e ast.Expr) (string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), true
	case ast.SelectKind:
		operand, ok := r.name(e.AsSelect().Operand())
		return operand + "." + e.AsSelect().FieldName(), ok
	case ast.LiteralKind:
		text, ok := e.AsLiteral().(types.String)
		return string(text), ok
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Subtract {
			left, leftOK := r.name(c.Args()[0])
			right, rightOK := r.name(c.Args()[1])
			return left + "-" + right, leftOK && rightOK
		}
	}
	return "", false
}

func isKnown(metric string) bool {
	_, ok := metrics.Define(metric)
	return ok
}

// unknownMetric returns why a metric has no value in any run, and the remedy.
func (r *resolver) unknownMetric(name string) (reason, hint string) {
	if isKnown(name) {
		if err := metrics.CheckName(name); err != nil && !r.isTrial {
			reason, hint, _ = strings.Cut(err.Error(), ": ")
		}
		return reason, hint
	}
	known := make([]string, len(metrics.Definitions))
	for i, d := range metrics.Definitions {
		known[i] = d.Name
	}
	base, _, _ := strings.Cut(name, ".")
	return "unknown metric " + name, syntax.DidYouMean(base, known, "see: cede help metrics")
}

// explainer explains problems that remain after names are resolved.
type explainer struct{}

// Undeclared explains an unknown function.
func (explainer) Undeclared(name string, isFunction bool) (reason, hint string) {
	if !isFunction {
		return "this form of CEL is not available in conditions", "see: cede help fail-if"
	}
	return fmt.Sprintf("unknown function %q", name), "see: cede help fail-if"
}

// NoOverload returns a remedy for operands of the wrong types.
func (explainer) NoOverload(types string) string {
	if strings.Contains(types, "bool") {
		return "compare numbers with < and >, and join conditions with && and ||"
	}
	return "see: cede help fail-if"
}
