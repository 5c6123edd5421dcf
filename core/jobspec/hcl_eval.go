package jobspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// runtimeRoots are the roots of references that are resolved on the node, such as
// ${attr.kernel.name}, ${node.class}, ${env["HOME"]} and ${NOMAD_PORT_http}. Such
// references are kept as text.
var runtimeRoots = []string{"attr", "node", "meta", "env", "device", "unique"}

func isRuntime(e hclsyntax.Expression) bool {
	for _, t := range e.Variables() {
		if root := t.RootName(); slices.Contains(runtimeRoots, root) || strings.HasPrefix(root, "NOMAD_") || strings.HasPrefix(root, "CEDE_") {
			return true
		}
	}
	return false
}

// preserveRuntimeRefs replaces references that are resolved on the node with their
// source text, within quoted strings and heredocs. It also rejects for and splat
// expressions.
func (t *hclTree) preserveRuntimeRefs(body *hclsyntax.Body) {
	keep := func(part hclsyntax.Expression) hclsyntax.Expression {
		if !isRuntime(part) {
			return part
		}
		text := "${" + string(part.Range().SliceBytes(t.src)) + "}"
		return &hclsyntax.LiteralValueExpr{Val: cty.StringVal(text), SrcRange: part.Range()}
	}
	_ = hclsyntax.VisitAll(body, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.TemplateExpr:
			for i, part := range n.Parts {
				n.Parts[i] = keep(part)
			}
		case *hclsyntax.TemplateWrapExpr:
			n.Wrapped = keep(n.Wrapped)
		case *hclsyntax.ForExpr:
			t.add(startOf(n.SrcRange), "for is not supported in job files", "list the elements")
		case *hclsyntax.SplatExpr:
			t.add(startOf(n.SrcRange), "[*] is not supported in job files", "list the elements")
		}
		return nil // the problems are added above
	})
}

// evaluate returns the value of an expression, or false after a problem.
func (t *hclTree) evaluate(e hclsyntax.Expression) (cty.Value, bool) {
	if t.isFull() || t.hasLoops(e) {
		return cty.NilVal, false
	}
	for _, v := range e.Variables() {
		if !t.checkReference(v) {
			return cty.NilVal, false
		}
	}
	got, diags := e.Value(t.contextOf(e))
	if diags.HasErrors() {
		for _, d := range diags {
			at := startOf(e.Range())
			if d.Subject != nil {
				at = startOf(*d.Subject)
			}
			t.add(at, d.Summary, d.Detail)
		}
		return cty.NilVal, false
	}
	return got, true
}

// hasLoops reports whether an expression contains a for or splat expression, which
// preserveRuntimeRefs has rejected.
func (t *hclTree) hasLoops(e hclsyntax.Expression) bool {
	found := false
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n.(type) {
		case *hclsyntax.ForExpr, *hclsyntax.SplatExpr:
			found = true
		}
		return nil
	})
	return found
}

// checkReference validates a reference in an expression and charges the size of its
// value to the budget.
func (t *hclTree) checkReference(v hcl.Traversal) bool {
	at := startOf(v.SourceRange())
	root := v.RootName()
	if root == "local" && t.locals != nil {
		return t.checkLocalReference(v)
	}
	if root != "var" {
		source := string(v.SourceRange().SliceBytes(t.src))
		remedy := "put strings in quotes; refer to variables as var.NAME, to local values as local.NAME"
		if slices.Contains(runtimeRoots, root) {
			remedy = fmt.Sprintf(`it is resolved on the node: write "${%s}"`, source)
		}
		t.add(at, fmt.Sprintf("unknown reference %.100s", source), remedy)
		return false
	}
	if name, ok := memberOf(v); ok && t.declared != nil && !t.declared[name] {
		t.add(at, fmt.Sprintf("unknown variable %.100q", name), nameRemedy(name, slices.Sorted(maps.Keys(t.declared)), `variable "%.100s" { default = ... }`))
		return false
	}
	return t.charge(at, t.varSize)
}

// charge spends n bytes of the budget. It adds a problem and returns false if the
// budget is exceeded.
func (t *hclTree) charge(at position, n int) bool {
	if !t.budget.spend(n) {
		t.add(at, "values of variables make the file too large", "use shorter values, or refer to them less often")
		return false
	}
	return true
}
