package jobspec

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions returns the functions that expressions may call. The result of each is
// bounded by the size of its arguments, or charged to the budget, and numbers are those of
// limitNumbers. No function reads files, clocks or random numbers, so that a file has the same meaning everywhere.
func functions(b *budget) map[string]function.Function {
	return limitNumbers(map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"length": stdlib.LengthFunc, "contains": stdlib.ContainsFunc, "keys": stdlib.KeysFunc, "values": stdlib.ValuesFunc,
		"lookup": stdlib.LookupFunc, "element": stdlib.ElementFunc, "coalesce": stdlib.CoalesceFunc,
		"concat": stdlib.ConcatFunc, "merge": stdlib.MergeFunc,
		"upper": bounded(b, stdlib.UpperFunc), "lower": bounded(b, stdlib.LowerFunc), "trimspace": bounded(b, stdlib.TrimSpaceFunc),
		"jsonencode": bounded(b, stdlib.JSONEncodeFunc), "split": bounded(b, stdlib.SplitFunc),
		"join":    joinFunction(b),
		"format":  formatFunction(b),
		"replace": replaceFunction(b),
	})
}

var errBudget = fmt.Errorf("expressions produce more than %d bytes of text", maxEvalBytes)

// bounded charges a function for twice the size of its arguments, which bounds the
// size of its result.
func bounded(b *budget, f function.Function) function.Function {
	return wrap(f, func(args []cty.Value) error {
		for _, a := range args {
			if !b.spend(2 * sizeOf(a)) {
				return errBudget
			}
		}
		return nil
	})
}

// wrap returns f with a check of the arguments before each call.
func wrap(f function.Function, check func([]cty.Value) error) function.Function {
	spec := &function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			for _, a := range args {
				if !a.IsWhollyKnown() {
					return f.ReturnTypeForValues(args)
				}
			}
			if err := check(args); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f.Call(args) },
	}
	return function.New(spec)
}

// joinFunction returns join, which also charges for the separators.
func joinFunction(b *budget) function.Function {
	return wrap(stdlib.JoinFunc, func(args []cty.Value) error {
		n := 0
		for _, list := range args[1:] {
			n += sizeOf(list)
			if list.CanIterateElements() {
				n += list.LengthInt() * sizeOf(args[0])
			}
		}
		if !b.spend(n) {
			return errBudget
		}
		return nil
	})
}

// wideVerb matches format verbs that pad to 1000 columns or more.
var wideVerb = regexp.MustCompile(`%[^a-zA-Z%]*[0-9]{4,}`)

func formatFunction(b *budget) function.Function {
	return wrap(stdlib.FormatFunc, func(args []cty.Value) error {
		n := 0
		for _, a := range args {
			if err := checkNumericText(a); err != nil {
				return err
			}
			n += sizeOf(a)
		}
		if args[0].Type() == cty.String && !args[0].IsNull() {
			text := args[0].AsString()
			if wideVerb.MatchString(text) {
				return fmt.Errorf("width must be less than 1000 columns")
			}
			verbs := strings.Count(text, "%")
			n += verbs * (1000 + n) // %[1]s may repeat an argument
		}
		if !b.spend(n) {
			return errBudget
		}
		return nil
	})
}

func replaceFunction(b *budget) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "text", Type: cty.String}, {Name: "old", Type: cty.String}, {Name: "new", Type: cty.String},
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, from, to := args[0].AsString(), args[1].AsString(), args[2].AsString()
			if !b.spend(len(text) + strings.Count(text, from)*len(to)) {
				return cty.NilVal, errBudget
			}
			return cty.StringVal(strings.ReplaceAll(text, from, to)), nil
		},
	})
}

// A budget bounds the bytes of text that the expressions of one file produce.
type budget struct{ spent int }

// maxEvalBytes is the total number of bytes of text that expressions may produce.
const maxEvalBytes = 4 << 20

// spend charges n bytes and returns false if the budget is exceeded.
func (b *budget) spend(n int) bool {
	b.spent += n
	return b.spent <= maxEvalBytes
}

// maxExponent bounds the binary exponents of numbers: those of float64 are within it.
const maxExponent = 1100

// numberRemedy is the remedy for a number outside the range of float64.
const numberRemedy = "write a finite decimal number, or put it in quotes"

var errNumberRange = errors.New("a number is outside the range of 64-bit floating point")

// isBoundedNumber reports whether a number is within the range of float64, or infinite.
// HCL computes with exponents of 31 bits. The text of such a number has up to 600
// million digits, which takes hours to compute.
func isBoundedNumber(n *big.Float) bool {
	exponent := n.MantExp(nil)
	return exponent <= maxExponent && exponent >= -maxExponent
}

// checkNumber returns an error if v is a number outside the range of float64.
func checkNumber(v cty.Value) error {
	v, _ = v.Unmark()
	if v.Type() == cty.Number && v.IsKnown() && !v.IsNull() && !isBoundedNumber(v.AsBigFloat()) {
		return errNumberRange
	}
	return nil
}

// checkElements is checkNumber for v and all values within it.
func checkElements(v cty.Value) error {
	return cty.Walk(v, func(_ cty.Path, element cty.Value) (bool, error) { return true, checkNumber(element) })
}

// checkNumbers is checkNumber for the arguments of a function.
func checkNumbers(values []cty.Value) error {
	for _, v := range values {
		if err := checkNumber(v); err != nil {
			return err
		}
	}
	return nil
}

// checkNumericText returns an error if v is the text of a number outside the range of
// float64, which the function format converts.
func checkNumericText(v cty.Value) error {
	v, _ = v.Unmark()
	if v.Type() != cty.String {
		return nil
	}
	if n, err := convert.Convert(v, cty.Number); err == nil {
		return checkNumber(n)
	}
	return nil
}

// limitNumbers returns the functions with a check of their arguments. Operands and
// arguments are checked where they are used, because HCL converts text to numbers there.
func limitNumbers(functions map[string]function.Function) map[string]function.Function {
	for name, f := range functions {
		functions[name] = wrap(f, checkNumbers)
	}
	return functions
}

// limitOperations checks the operands of all arithmetic within node, so that results
// have at most twice the digits of a float64.
func limitOperations(node hclsyntax.Node) {
	_ = hclsyntax.VisitAll(node, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.BinaryOpExpr:
			n.Op = limitOperation(n.Op)
		case *hclsyntax.UnaryOpExpr:
			n.Op = limitOperation(n.Op)
		}
		return nil
	})
}

func limitOperation(op *hclsyntax.Operation) *hclsyntax.Operation {
	if op.Impl.Params()[0].Type != cty.Number {
		return op
	}
	limited := *op
	limited.Impl = wrap(op.Impl, checkNumbers)
	return &limited
}

// checkLiteral adds a problem and returns false if a literal is outside the range of
// float64.
func (r *parser) checkLiteral(t hclsyntax.Token) bool {
	n, err := cty.ParseNumberVal(string(t.Bytes))
	if err == nil && checkNumber(n) != nil {
		r.add(startOf(t.Range), fmt.Sprintf("invalid number %.40s", t.Bytes), numberRemedy)
		return false
	}
	return true
}
