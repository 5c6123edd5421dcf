package condition

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

// errDivision means that the divisor is zero. CEL would return an infinite value, and a
// check would pass or fail for no reason.
var errDivision = errors.New("division by zero")

// The functions whose arguments are names: of a metric, then of policies.
const (
	named  = "metric"
	low    = "low"
	high   = "high"
	worse  = "worse"
	better = "better"
)

// environment returns the functions of conditions, bound to one evaluation.
func environment(in *evaluation) (*cel.Env, error) {
	subset := &env.LibrarySubset{DisableMacros: true}
	for _, name := range []string{
		operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Equals, operators.NotEquals,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.Add, operators.Subtract, operators.Multiply, operators.Negate,
	} {
		subset.IncludeFunctions = append(subset.IncludeFunctions, env.NewFunction(name))
	}
	x, s := cel.DoubleType, cel.StringType
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		numeric(operators.Divide, func(x, y float64) (float64, error) {
			if y == 0 {
				return 0, errDivision
			}
			return x / y, nil
		}),
		numeric("min", func(x, y float64) (float64, error) { return math.Min(x, y), nil }),
		numeric("max", func(x, y float64) (float64, error) { return math.Max(x, y), nil }),
		cel.Function("abs", cel.Overload("abs_double", []*cel.Type{x}, x, cel.UnaryBinding(func(v ref.Val) ref.Val {
			return types.Double(math.Abs(float64(v.(types.Double))))
		}))),
		cel.Function("orValue", cel.MemberOverload("double_or_value", []*cel.Type{x, x}, x, cel.OverloadIsNonStrict(), cel.BinaryBinding(orValue))),
	}
	for _, name := range []string{named, low, high} {
		options = append(options, cel.Function(name, cel.Overload(name+"_string_string", []*cel.Type{s, s}, x,
			cel.BinaryBinding(func(metric, policy ref.Val) ref.Val { return in.measure(name, text(metric), text(policy)) }))))
	}
	for _, name := range []string{worse, better} {
		options = append(options, cel.Function(name, cel.Overload(name+"_string_string_string", []*cel.Type{s, s, s}, cel.BoolType,
			cel.FunctionBinding(func(args ...ref.Val) ref.Val {
				return in.verdict(name == better, text(args[0]), text(args[1]), text(args[2]))
			}))))
	}
	return cel.NewCustomEnv(append(options, syntax.Limits()...)...)
}

func text(v ref.Val) string { return string(v.(types.String)) }

// numeric declares a function of two numbers.
func numeric(name string, f func(x, y float64) (float64, error)) cel.EnvOption {
	return cel.Function(name, cel.Overload(strings.Trim(name, "_")+"_numbers", []*cel.Type{cel.DoubleType, cel.DoubleType}, cel.DoubleType,
		cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			v, err := f(float64(a.(types.Double)), float64(b.(types.Double)))
			if err != nil {
				return types.WrapErr(err)
			}
			return types.Double(v)
		})))
}

// orValue returns a number, or another if its metric is absent.
func orValue(x, otherwise ref.Val) ref.Val {
	if err, ok := x.(*types.Err); ok && errors.Is(err, ErrAbsent) {
		return otherwise
	}
	return x
}

// measure returns the median of a metric, or one end of its interval.
func (in *evaluation) measure(part, metric, policy string) ref.Val {
	name := metric + "(" + policy + ")"
	if part != named {
		name = part + "(" + name + ")"
	}
	if i, ok := in.data.Interval(metric, policy); ok {
		v := map[string]float64{named: i.Median, low: i.Low, high: i.High}[part]
		in.record("%s = %s", name, compare.Number(v))
		return types.Double(v)
	}
	in.record("%s is absent", name)
	if parts := partsOf(in.data, metric); len(parts) > 0 {
		return types.WrapErr(fmt.Errorf("%s: %w; available: %s", name, ErrAbsent, strings.Join(parts, ", ")))
	}
	return types.WrapErr(fmt.Errorf("%s: %w; set a default, as in %s.orValue(0)", name, ErrAbsent, name))
}

// partsOf returns the metrics in the runs that share the definition of an absent name:
// for wastedWork, wastedWork.cpu.
func partsOf(d Data, name string) []string {
	var parts []string
	want, _ := metrics.Define(name)
	for _, metric := range d.Metrics() {
		if have, _ := metrics.Define(metric); have.Name == want.Name && metric != name {
			parts = append(parts, metric)
		}
	}
	return parts
}

// verdict reports whether policy p is worse, or better, than q, and not by chance.
func (in *evaluation) verdict(wantBetter bool, metric, p, q string) ref.Val {
	d, ok := in.data.Difference(metric, p, q)
	if !ok {
		return types.WrapErr(fmt.Errorf("%s of %s and %s: %w", metric, p, q, ErrAbsent))
	}
	in.record("%s: %s minus %s = %s", metric, p, q, compare.Signed(d.Interval))
	definition, _ := metrics.Define(metric)
	isBetter := (d.Low > 0) == (definition.Better == metrics.Higher)
	return types.Bool(!d.None() && isBetter == wantBetter)
}
