package jobspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/cede-scheduler/cede/core/suggest"
)

// A local is one value of a block `locals { x = ... }`, referred to as local.x. It is
// evaluated at the first reference. The order in the file therefore does not matter,
// and a file read with SchedulingOnly may hold locals that cannot be evaluated.
type local struct {
	at    position
	expr  hclsyntax.Expression
	state localState
	value cty.Value
	size  int // bytes of text, estimated by sizeOf
}

type localState uint8

const (
	localUnevaluated localState = iota
	localEvaluating             // a reference in this state is a cycle
	localEvaluated
	localFailed // its problem has been added
)

// readLocals declares the local values of a file. Unless the file is read with
// SchedulingOnly, it also evaluates them in the order of the file.
func (t *hclTree) readLocals(body *hclsyntax.Body) {
	t.locals = map[string]*local{}
	for _, b := range body.Blocks {
		if b.Type == "locals" {
			t.declareLocals(b)
		}
	}
	if t.schedulingOnly {
		return
	}
	list := slices.SortedFunc(maps.Values(t.locals), func(a, b *local) int {
		return cmp.Or(a.at.line-b.at.line, a.at.column-b.at.column)
	})
	for _, l := range list {
		t.resolve(l)
	}
}

func (t *hclTree) declareLocals(b *hclsyntax.Block) {
	if len(b.Labels) > 0 {
		t.add(startOf(b.TypeRange), "locals takes no label", "write locals { name = value }")
	}
	for _, inner := range b.Body.Blocks {
		t.add(startOf(inner.TypeRange), fmt.Sprintf("unknown block %.100q in locals", inner.Type), fmt.Sprintf("write %.100s = value", inner.Type))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Body.Attributes)) {
		a := b.Body.Attributes[name]
		at := startOf(a.NameRange)
		if _, twice := t.locals[name]; twice {
			t.add(at, fmt.Sprintf("duplicate local value %.100q", name), "give each a unique name")
			continue
		}
		t.locals[name] = &local{at: at, expr: a.Expr}
	}
}

// resolve evaluates a local value, once, after the values it refers to. It returns
// false if the value is invalid or part of a cycle.
func (t *hclTree) resolve(l *local) bool {
	switch l.state {
	case localUnevaluated:
		l.state = localEvaluating
		value, ok := t.evaluate(l.expr)
		if l.state = localFailed; ok {
			l.state, l.value, l.size = localEvaluated, value, sizeOf(value)
		}
	case localEvaluating:
		t.add(l.at, "local value refers to itself", "break the cycle of references")
		return false
	}
	return l.state == localEvaluated
}

// checkLocalReference resolves local.NAME in an expression and charges its size to
// the budget.
func (t *hclTree) checkLocalReference(v hcl.Traversal) bool {
	at := startOf(v.SourceRange())
	name, ok := memberOf(v)
	if !ok {
		t.add(at, "invalid reference to a local value", "write local.NAME")
		return false
	}
	l := t.locals[name]
	if l == nil {
		t.add(at, fmt.Sprintf("unknown local value %.100q", name), nameRemedy(name, slices.Sorted(maps.Keys(t.locals)), "locals { %.100s = ... }"))
		return false
	}
	return t.resolve(l) && t.charge(at, l.size)
}

// contextOf returns the evaluation context of an expression: the variables, and the
// local values it refers to, which are already resolved. Its cost depends on the
// references of the expression, not on the number of locals in the file.
func (t *hclTree) contextOf(e hclsyntax.Expression) *hcl.EvalContext {
	named := map[string]cty.Value{}
	for _, v := range e.Variables() {
		if name, ok := memberOf(v); ok && v.RootName() == "local" {
			named[name] = t.locals[name].value
		}
	}
	if len(named) == 0 {
		return t.context
	}
	inner := t.context.NewChild()
	inner.Variables = map[string]cty.Value{"local": cty.ObjectVal(named)}
	return inner
}

// memberOf returns NAME of a reference root.NAME, or false if there is no such attribute.
func memberOf(v hcl.Traversal) (string, bool) {
	if len(v) < 2 {
		return "", false
	}
	attr, ok := v[1].(hcl.TraverseAttr)
	return attr.Name, ok
}

// nameRemedy returns the remedy for an unknown name: the most similar known name if
// there is one, else the declaration to add.
func nameRemedy(name string, names []string, declare string) string {
	return suggest.DidYouMean(name, names, fmt.Sprintf("declare it: "+declare, name))
}
