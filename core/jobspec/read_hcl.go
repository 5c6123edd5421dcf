package jobspec

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// readHCL reads a file into a tree with all expressions evaluated. It returns nil
// after a syntax error.
func (r *parser) readHCL(src []byte, vars map[string]string) *value {
	if !r.withinHCLBounds(src) {
		return nil
	}
	file, diags := hclsyntax.ParseConfig(src, r.file, hcl.InitialPos)
	if r.diagnose(diags) {
		return nil
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return nil // unreachable: ParseConfig returns this type
	}
	t := &hclTree{parser: r, src: src}
	t.preserveRuntimeRefs(body)
	limitOperations(body)
	t.variables(body, vars)
	t.readLocals(body)
	return t.body(body, 0)
}

// diagnose adds the errors of diags to the problems and reports whether there were
// any.
func (r *parser) diagnose(diags hcl.Diagnostics) bool {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		at := position{1, 1}
		if d.Subject != nil {
			at = startOf(*d.Subject)
		}
		r.add(at, "not valid HCL: "+d.Summary, d.Detail)
	}
	return diags.HasErrors()
}

func startOf(r hcl.Range) position { return position{r.Start.Line, r.Start.Column} }

// An hclTree converts an HCL body into a tree of values.
type hclTree struct {
	*parser
	src     []byte
	context *hcl.EvalContext
	budget  budget
	values  int
	varSize int // bytes of the largest variable

	declared map[string]bool   // names of variables; nil until all are read
	locals   map[string]*local // nil until declared: variables cannot refer to them
}

// body returns the object of a block's body, with its fields in the order of the file.
func (t *hclTree) body(b *hclsyntax.Body, depth int) *value {
	v := &value{kind: kindObject, at: startOf(b.SrcRange), labels: []label{}}
	for _, a := range b.Attributes {
		if t.isIgnoredBlock(a.Name) {
			v.fields = append(v.fields, &field{name: a.Name, at: startOf(a.NameRange), value: &value{invalid: true}})
			continue
		}
		v.fields = append(v.fields, &field{name: a.Name, at: startOf(a.NameRange), value: t.expression(a.Expr, depth+1)})
	}
	for _, block := range b.Blocks {
		if depth == 0 && (block.Type == "variable" || block.Type == "locals") {
			continue // already read
		}
		inner := &value{invalid: true}
		if !t.isIgnoredBlock(block.Type) {
			inner = t.body(block.Body, depth+1)
		}
		inner.at = startOf(block.TypeRange)
		for i, l := range block.Labels {
			inner.labels = append(inner.labels, label{l, startOf(block.LabelRanges[i])})
		}
		v.fields = append(v.fields, &field{name: block.Type, at: inner.at, block: true, value: inner})
	}
	slices.SortFunc(v.fields, func(a, b *field) int {
		if a.at.line != b.at.line {
			return a.at.line - b.at.line
		}
		return a.at.column - b.at.column
	})
	return v
}

// expression evaluates e. It descends into literal lists and mappings, so that their
// elements have positions of their own.
func (t *hclTree) expression(e hclsyntax.Expression, depth int) *value {
	at := startOf(e.Range())
	switch e := e.(type) {
	case *hclsyntax.TupleConsExpr:
		v := &value{kind: kindList, at: at}
		for _, x := range e.Exprs {
			v.list = append(v.list, t.expression(x, depth+1))
		}
		return v
	case *hclsyntax.ObjectConsExpr:
		v := &value{kind: kindObject, at: at}
		for _, item := range e.Items {
			if key, ok := t.key(item.KeyExpr); ok {
				v.fields = append(v.fields, &field{name: key, at: startOf(item.KeyExpr.Range()), value: t.expression(item.ValueExpr, depth+1)})
			}
		}
		return v
	}
	got, ok := t.evaluate(e)
	if !ok {
		return &value{at: at, invalid: true}
	}
	return t.fromCty(got, at, depth)
}

func (t *hclTree) key(e hclsyntax.Expression) (string, bool) {
	got, ok := t.evaluate(e)
	if !ok {
		return "", false
	}
	text, err := convert.Convert(got, cty.String)
	if err != nil || text.IsNull() || !text.IsKnown() {
		t.add(startOf(e.Range()), "mapping key is not a string", "write { name = value }")
		return "", false
	}
	return text.AsString(), true
}

// fromCty converts an evaluated value. All values within it have the position of the
// expression.
func (t *hclTree) fromCty(got cty.Value, at position, depth int) *value {
	v := &value{at: at}
	if t.values++; t.values > maxValues || depth > maxDepth {
		if t.values == maxValues+1 || depth == maxDepth+1 {
			t.add(at, fmt.Sprintf("more than %d values, or nested more than %d deep", maxValues, maxDepth), "check that this is a job file")
		}
		return v
	}
	got, _ = got.Unmark()
	switch kind := got.Type(); {
	case got.IsNull() || !got.IsKnown():
	case kind == cty.String:
		v.kind, v.text = kindText, got.AsString()
	case kind == cty.Bool:
		v.kind, v.text = kindBool, fmt.Sprint(got.True())
	case kind == cty.Number:
		v.kind, v.text = kindNumber, got.AsBigFloat().Text('g', -1)
		t.checkFinite(v)
	case kind.IsTupleType() || kind.IsListType() || kind.IsSetType():
		v.kind = kindList
		for _, e := range got.Elements() {
			v.list = append(v.list, t.fromCty(e, at, depth+1))
		}
	case kind.IsObjectType() || kind.IsMapType():
		v.kind = kindObject
		for key, e := range got.Elements() {
			name, _ := key.Unmark()
			v.fields = append(v.fields, &field{name: name.AsString(), at: at, value: t.fromCty(e, at, depth+1)})
		}
	}
	return v
}

const (
	// maxOperators bounds expressions that nest without brackets. The parser and the
	// evaluator recurse once per operator, and Go terminates a process if its stack
	// overflows.
	maxOperators = 5000
	// maxUnary is the maximum number of consecutive unary operators.
	maxUnary = 8
)

// withinHCLBounds reports whether a file stays within the limits on nesting, operators
// and numbers. It scans the tokens before the file is parsed, because the parser
// recurses for every bracket. If a limit is exceeded, it adds a problem and returns
// false.
func (r *parser) withinHCLBounds(src []byte) bool {
	tokens, _ := hclsyntax.LexConfig(src, r.file, hcl.InitialPos) // the parser reports lexical errors
	depth, operators, unary := 0, 0, 0
	for _, t := range tokens {
		signs := 0
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl, hclsyntax.TokenOHeredoc:
			depth++
			operators++
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen,
			hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCHeredoc:
			depth = max(depth-1, 0)
		case hclsyntax.TokenBang, hclsyntax.TokenMinus:
			signs = unary + 1
			operators++
		case hclsyntax.TokenQuestion, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash, hclsyntax.TokenPercent,
			hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual,
			hclsyntax.TokenLessThan, hclsyntax.TokenLessThanEq, hclsyntax.TokenGreaterThan, hclsyntax.TokenGreaterThanEq,
			hclsyntax.TokenDot, hclsyntax.TokenColon:
			operators++
		}
		unary = signs
		at := startOf(t.Range)
		switch {
		case depth > maxDepth:
			r.add(at, fmt.Sprintf("brackets nested more than %d deep", maxDepth), "check the brackets and quotes before this")
		case unary > maxUnary:
			r.add(at, fmt.Sprintf("more than %d signs in a row", maxUnary), "remove them")
		case operators > maxOperators:
			r.add(at, fmt.Sprintf("more than %d brackets and operators", maxOperators), "check that this is a job file")
		case t.Type == hclsyntax.TokenNumberLit && !r.checkLiteral(t):
		default:
			continue
		}
		return false
	}
	return true
}
