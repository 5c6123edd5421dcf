package jobspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/cede-scheduler/cede/core/internal/suggest"
)

// local is one value of a block `locals { x = ... }`, known as local.x. It is
// evaluated when something first refers to it: the order in the file is free, and
// what is read for scheduling alone need not understand the others.
type local struct {
	at    position
	expr  hclsyntax.Expression
	state localState
	value cty.Value
	size  int // bytes of text, roughly
}

type localState uint8

const (
	localUnevaluated localState = iota
	localEvaluating             // whoever refers to it now goes round
	localEvaluated
	localFailed // what is wrong with it was told
)

// readLocals notes the local values of a file, and has each evaluated unless the
// file is read for scheduling alone.
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

// resolve evaluates a local value once, and those that it refers to before.
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

// checkLocalReference checks local.NAME in an expression, and what using it makes.
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

// contextOf is what an expression may refer to: the variables, and of the local
// values those that it names, which are known. It costs what the expression names
// and not what the file holds.
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

// memberOf is NAME of root.NAME.
func memberOf(v hcl.Traversal) (string, bool) {
	if len(v) < 2 {
		return "", false
	}
	attr, ok := v[1].(hcl.TraverseAttr)
	return attr.Name, ok
}

// nameRemedy is what to do about a name that nothing has: the nearest that is there, or
// declare it.
func nameRemedy(name string, names []string, declare string) string {
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("declare it: "+declare, name)
}
