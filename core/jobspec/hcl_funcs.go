package jobspec

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions returns the functions that expressions may call. The result of each is
// bounded by the size of its arguments, or charged to the budget. No function reads
// files, clocks or random numbers, so that a file has the same meaning everywhere.
func functions(b *budget) map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "max": stdlib.MaxFunc, "min": stdlib.MinFunc,
		"length": stdlib.LengthFunc, "contains": stdlib.ContainsFunc, "keys": stdlib.KeysFunc, "values": stdlib.ValuesFunc,
		"lookup": stdlib.LookupFunc, "element": stdlib.ElementFunc, "coalesce": stdlib.CoalesceFunc,
		"concat": stdlib.ConcatFunc, "merge": stdlib.MergeFunc,
		"upper": bounded(b, stdlib.UpperFunc), "lower": bounded(b, stdlib.LowerFunc), "trimspace": bounded(b, stdlib.TrimSpaceFunc),
		"jsonencode": bounded(b, stdlib.JSONEncodeFunc), "split": bounded(b, stdlib.SplitFunc),
		"join":    joinFunction(b),
		"format":  formatFunction(b),
		"replace": replaceFunction(b),
	}
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
