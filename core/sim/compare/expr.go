package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// ExpressionHelp documents the language of --fail-if for `cede help`.
const ExpressionHelp = `An expression is a condition. If it is true, the comparison fails:

    victims(nomad) > victims(default)
    wastedWork.cpu(nomad) > 1.02 * wastedWork.cpu(default)
    worse(queueDelay.75.p99, nomad, default) or goodput(nomad) < 90%

METRIC(POLICY)       the median of a metric over all runs of a policy. METRIC
                     is a dotted name as in the table, POLICY a value of -p;
                     quote either ('...') if it contains , ( or ).
low(...) high(...)   the ends of the 95 % interval: low(victims(nomad))
worse(METRIC, P, Q)  P is worse than Q, and not by chance: the 95 % interval of
                     the paired differences lies on the bad side of 0
better(METRIC, P, Q) the same on the good side
x ?? y               x, or y if the runs do not contain x
+ - * /  < <= > >= == !=  and or not  ( )   numbers: 3  1.02  1e6  5%
`

// ErrAbsent means that an expression uses a metric that the runs do not contain.
var ErrAbsent = errors.New("metric not present in the runs")

// A SyntaxError describes an invalid expression.
type SyntaxError struct {
	Text   string
	Column int // in runes, from 1
	Msg    string
	Hint   string
}

func (e *SyntaxError) Error() string {
	out := fmt.Sprintf("column %d: %s\n  %s\n  %s^", e.Column, e.Msg, e.Text, strings.Repeat(" ", e.Column-1))
	if e.Hint != "" {
		out += "\n  " + e.Hint
	}
	return out
}

// An Expression is a condition on a comparison. It is immutable.
type Expression struct {
	text string
	root node
}

// ParseExpression parses a condition. policies are the policies that will be
// compared. It returns a *SyntaxError if the text is malformed, or if it names an
// unknown policy or metric, so that these errors are reported before the runs start.
func ParseExpression(text string, policies []string) (*Expression, error) {
	p := &parser{text: text, policies: policies}
	if err := p.scan(); err != nil {
		return nil, err
	}
	root, err := p.or()
	if err == nil && p.peek().kind != tokenEnd {
		err = p.unexpected("an operator or the end")
	}
	if err == nil && !root.boolean() {
		err = p.fail(p.tokens[0], "expected a condition, found a number", "add a comparison: victims(nomad) > 10")
	}
	if err != nil {
		return nil, err
	}
	return &Expression{text, root}, nil
}

func (e *Expression) String() string { return e.text }

// Holds evaluates the condition. It also returns the values of its operands, one per
// line, in the order of the expression. It returns an error that wraps ErrAbsent if a
// value is missing.
func (e *Expression) Holds(d *Document) (bool, []string, error) {
	in := &evaluation{document: d}
	v, err := e.root.value(in)
	return v != 0, in.operands, err
}

// evaluation is one pass over an expression. Booleans are 1 and 0.
type evaluation struct {
	document *Document
	operands []string
}

func (in *evaluation) record(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(in.operands, line) {
		in.operands = append(in.operands, line)
	}
}

// node is a node of the syntax tree.
type node interface {
	boolean() bool
	value(in *evaluation) (float64, error)
}

type number float64

func (number) boolean() bool                        { return false }
func (n number) value(*evaluation) (float64, error) { return float64(n), nil }

// measure is METRIC(POLICY), or one end of its interval.
type measure struct{ metric, policy, part string }

func (*measure) boolean() bool { return false }

func (m *measure) value(in *evaluation) (float64, error) {
	if r := in.document.Row(m.metric); r != nil {
		if i, ok := r.Policies[m.policy]; ok {
			v := map[string]float64{"": i.Median, "low": i.Low, "high": i.High}[m.part]
			in.record("%s = %s", m, Number(v))
			return v, nil
		}
	}
	in.record("%s is absent", m)
	if parts := in.document.parts(m.metric); len(parts) > 0 {
		return 0, fmt.Errorf("%s: %w; available: %s", m, ErrAbsent, strings.Join(parts, ", "))
	}
	return 0, fmt.Errorf("%s: %w; set a default with ??, as in (%s ?? 0)", m, ErrAbsent, m)
}

// parts returns the metrics in the runs that share the definition of an absent name:
// for wastedWork, wastedWork.cpu.
func (d *Document) parts(name string) []string {
	var parts []string
	want, _ := metrics.Define(name)
	for i := range d.Summary {
		if have, _ := metrics.Define(d.Summary[i].Metric); have.Name == want.Name && d.Summary[i].Metric != name {
			parts = append(parts, d.Summary[i].Metric)
		}
	}
	return parts
}

func (m *measure) String() string {
	if m.part == "" {
		return m.metric + "(" + m.policy + ")"
	}
	return m.part + "(" + m.metric + "(" + m.policy + "))"
}

// verdict is worse(METRIC, P, Q) or better(METRIC, P, Q).
type verdict struct {
	metric, p, q string
	better       bool
}

func (*verdict) boolean() bool { return true }

func (v *verdict) value(in *evaluation) (float64, error) {
	d, ok := in.document.Difference(v.metric, v.p, v.q)
	if !ok {
		return 0, fmt.Errorf("%s of %s and %s: %w", v.metric, v.p, v.q, ErrAbsent)
	}
	in.record("%s: %s minus %s = %s", v.metric, v.p, v.q, signed(d.Interval))
	definition, _ := metrics.Define(v.metric)
	more := d.Low > 0
	if d.None() || more != ((definition.Better == metrics.Higher) == v.better) {
		return 0, nil
	}
	return 1, nil
}

type binary struct {
	op          string
	left, right node
	at          token
}

func (b *binary) boolean() bool {
	return b.op != "+" && b.op != "-" && b.op != "*" && b.op != "/" && b.op != "??"
}

func (b *binary) value(in *evaluation) (float64, error) {
	x, err := b.left.value(in)
	switch {
	case b.op == "??" && errors.Is(err, ErrAbsent):
		return b.right.value(in)
	case err != nil, b.op == "??":
		return x, err
	case b.op == "and" && x == 0, b.op == "or" && x != 0:
		return x, nil
	}
	y, err := b.right.value(in)
	if err != nil {
		return 0, err
	}
	return b.apply(x, y)
}

func (b *binary) apply(x, y float64) (float64, error) {
	switch b.op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "/":
		if y == 0 {
			return 0, fmt.Errorf("column %d: division by zero", b.at.column)
		}
		return x / y, nil
	case "and", "or":
		return y, nil
	case "<":
		return truth(x < y), nil
	case "<=":
		return truth(x <= y), nil
	case ">":
		return truth(x > y), nil
	case ">=":
		return truth(x >= y), nil
	case "==":
		return truth(x == y), nil
	}
	return truth(x != y), nil
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

type unary struct {
	op string
	of node
}

func (u *unary) boolean() bool { return u.op == "not" }

func (u *unary) value(in *evaluation) (float64, error) {
	x, err := u.of.value(in)
	if u.op == "not" {
		return truth(x == 0), err
	}
	return -x, err
}
