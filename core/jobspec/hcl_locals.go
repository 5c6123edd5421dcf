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
	at    place
	expr  hclsyntax.Expression
	state localState
	value cty.Value
	size  int // bytes of text, roughly
}

type localState uint8

const (
	localWritten localState = iota
	localBegun              // whoever refers to it now goes round
	localKnown
	localBad // what is wrong with it was told
)

// readLocals notes the local values of a file, and has each evaluated unless the
// file is read for scheduling alone.
func (t *hclTree) readLocals(body *hclsyntax.Body) {
	t.locals = map[string]*local{}
	for _, b := range body.Blocks {
		if b.Type == "locals" {
			t.noteLocals(b)
		}
	}
	if t.schedulingOnly {
		return
	}
	list := slices.SortedFunc(maps.Values(t.locals), func(a, b *local) int {
		return cmp.Or(a.at.line-b.at.line, a.at.column-b.at.column)
	})
	for _, l := range list {
		t.known(l)
	}
}

func (t *hclTree) noteLocals(b *hclsyntax.Block) {
	if len(b.Labels) > 0 {
		t.add(startOf(b.TypeRange), "locals has no name", "write locals { name = value }")
	}
	for _, inner := range b.Body.Blocks {
		t.add(startOf(inner.TypeRange), fmt.Sprintf("locals has no block %.100q", inner.Type), fmt.Sprintf("write %.100s = value", inner.Type))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Body.Attributes)) {
		a := b.Body.Attributes[name]
		at := startOf(a.NameRange)
		if _, twice := t.locals[name]; twice {
			t.add(at, fmt.Sprintf("there is a local value %.100q already", name), "give each its own name")
			continue
		}
		t.locals[name] = &local{at: at, expr: a.Expr}
	}
}

// known evaluates a local value once, and those that it refers to before.
func (t *hclTree) known(l *local) bool {
	switch l.state {
	case localWritten:
		l.state = localBegun
		value, ok := t.evaluate(l.expr)
		if l.state = localBad; ok {
			l.state, l.value, l.size = localKnown, value, sizeOf(value)
		}
	case localBegun:
		t.add(l.at, "this local value needs itself", "write one of those that refer to each other out")
		return false
	}
	return l.state == localKnown
}

// localReference checks local.NAME in an expression, and what using it makes.
func (t *hclTree) localReference(v hcl.Traversal) bool {
	at := startOf(v.SourceRange())
	name, ok := memberOf(v)
	if !ok {
		t.add(at, "local values have names", "write local.NAME")
		return false
	}
	l := t.locals[name]
	if l == nil {
		t.add(at, fmt.Sprintf("there is no local value %.100q", name), meant(name, slices.Sorted(maps.Keys(t.locals)), "locals { %.100s = ... }"))
		return false
	}
	return t.known(l) && t.afford(at, l.size)
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

// meant is what to do about a name that nothing has: the nearest that is there, or
// declare it.
func meant(name string, names []string, declare string) string {
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("declare it: "+declare, name)
}
