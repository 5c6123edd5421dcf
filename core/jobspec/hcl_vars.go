package jobspec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/cede-scheduler/cede/core/suggest"
)

// variableFields lists the fields of a variable.
var variableFields = []string{"default", "description", "type"}

// variables reads the blocks `variable "x" { default = ... }`, applies the values
// given by the caller and defines the results as var.x.
func (t *hclTree) variables(body *hclsyntax.Body, given map[string]string) {
	t.context = &hcl.EvalContext{Functions: functions(&t.budget)}
	known := map[string]cty.Value{}
	for _, b := range body.Blocks {
		if b.Type != "variable" {
			continue
		}
		at := startOf(b.TypeRange)
		if len(b.Labels) != 1 {
			t.add(at, fmt.Sprintf("variable has %d labels: expected one", len(b.Labels)), `write variable "name" { default = ... }`)
			continue
		}
		name := b.Labels[0]
		if _, twice := known[name]; twice {
			t.add(at, fmt.Sprintf("duplicate variable %.100q", name), "give each a unique name")
			continue
		}
		text, isGiven := given[name]
		known[name] = t.variable(name, b, text, isGiven)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := known[name]; !ok {
			remedy := "the file declares no variables"
			if names := slices.Sorted(maps.Keys(known)); len(names) > 0 {
				remedy = suggest.DidYouMean(name, names, fmt.Sprintf("declared variables: %v", names))
			}
			t.add(position{1, 1}, fmt.Sprintf("undeclared variable %.100q", name), remedy)
		}
	}
	for _, v := range known {
		t.varSize = max(t.varSize, sizeOf(v))
	}
	t.context.Variables = map[string]cty.Value{"var": cty.ObjectVal(known)}
	t.declared = map[string]bool{}
	for name := range known {
		t.declared[name] = true
	}
}

// sizeOf returns the approximate size of a value in bytes of text.
func sizeOf(v cty.Value) int {
	v, _ = v.Unmark()
	switch {
	case v.IsNull() || !v.IsKnown():
		return 4
	case v.Type() == cty.String:
		return len(v.AsString())
	case v.CanIterateElements():
		n := 16
		for k, e := range v.Elements() {
			n += sizeOf(k) + sizeOf(e)
		}
		return n
	}
	return 16
}

// variable returns the value of one variable, or null after a problem.
func (t *hclTree) variable(name string, b *hclsyntax.Block, given string, isGiven bool) cty.Value {
	none := cty.NullVal(cty.DynamicPseudoType)
	kind := cty.DynamicPseudoType
	var preset *hclsyntax.Attribute
	for _, key := range slices.Sorted(maps.Keys(b.Body.Attributes)) {
		switch a := b.Body.Attributes[key]; key {
		case "default":
			preset = a
		case "type":
			k, diags := typeexpr.TypeConstraint(a.Expr)
			if t.diagnose(diags) {
				return none
			}
			kind = k
		case "description":
		default:
			t.add(startOf(a.NameRange), fmt.Sprintf("unknown field %.100q in a variable", key), suggest.Field(key, variableFields))
		}
	}
	for _, inner := range b.Body.Blocks {
		t.add(startOf(inner.TypeRange), fmt.Sprintf("unknown block %.100q in a variable", inner.Type), suggest.Field(inner.Type, variableFields))
	}
	at := startOf(b.TypeRange)
	var value cty.Value
	switch {
	case isGiven:
		if kind == cty.DynamicPseudoType && preset != nil { // infer the type from the default
			if got, ok := t.evaluate(preset.Expr); ok && !got.IsNull() && got.Type().IsPrimitiveType() {
				kind = got.Type()
			}
		}
		value = t.givenValue(given, kind)
	case preset == nil:
		t.add(at, fmt.Sprintf("variable %.100q has no value", name), fmt.Sprintf("add a default, or set it: --var %.100s=VALUE", name))
		return none
	default:
		at = startOf(preset.Expr.Range())
		got, ok := t.evaluate(preset.Expr)
		if !ok {
			return none
		}
		value = got
	}
	got, err := convert.Convert(value, kind)
	if err == nil {
		err = checkElements(got)
	}
	if err != nil {
		t.add(at, fmt.Sprintf("variable %.100q: %v", name, err), "write a value of its type")
		return none
	}
	return got
}

// givenValue converts a value of --var. It returns a string if the type is primitive
// or unknown, and evaluates the text as HCL otherwise.
func (t *hclTree) givenValue(text string, kind cty.Type) cty.Value {
	if kind.IsPrimitiveType() || kind == cty.DynamicPseudoType {
		return cty.StringVal(text)
	}
	inner := &parser{file: "--var", rejected: map[string]bool{}, origins: map[string]origin{}}
	if inner.withinHCLBounds([]byte(text)) {
		if e, diags := hclsyntax.ParseExpression([]byte(text), "--var", hcl.InitialPos); !diags.HasErrors() {
			limitOperations(e)
			tree := &hclTree{parser: inner, context: &hcl.EvalContext{}}
			if got, ok := tree.evaluate(e); ok {
				return got
			}
		}
	}
	return cty.StringVal(text) // the conversion to the type reports the problem
}
