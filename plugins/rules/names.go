package rules

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

// explainer explains problems with the names and types of an expression.
type explainer struct {
	scope      schema.Scope
	expression *Expression
}

// Undeclared explains an unknown name.
func (x explainer) Undeclared(name string, isFunction bool) (reason, hint string) {
	if isFunction {
		return fmt.Sprintf("unknown function %q", name[strings.LastIndexByte(name, '.')+1:]), "docs/reference/rules.md lists the functions"
	}
	if rules := scopesOf(name); rules != 0 && rules&x.scope == 0 {
		return name + " cannot be used here", "it can be used in " + scopeNames(rules)
	}
	if _, ok := names()[name]; ok { // the parser resolves the argument of has by its parts
		return fmt.Sprintf("has(%s) has no key", name), "write has(victim.labels.tier)"
	}
	var known []string
	for n, s := range names() {
		if s&x.scope != 0 {
			known = append(known, n)
		}
	}
	return fmt.Sprintf("unknown name %q", name), syntax.DidYouMean(name, known, cmp.Or(x.textHint(name), "docs/reference/rules.md lists the names"))
}

// textHint returns a remedy for a text without quotes: every name of the schema but one
// has a dot. YAML removes quotes around the whole expression, and reads two single quotes
// within single ones as one.
func (x explainer) textHint(name string) string {
	if strings.Contains(name, ".") {
		return ""
	}
	const names = "docs/reference/rules.md lists the names; "
	switch {
	case x.expression.quote != "" && strings.TrimSpace(x.expression.Text) == name:
		return fmt.Sprintf(`%sYAML removes quotes around an expression: write a text as "'%s'"`, names, name)
	case x.expression.quote == "'":
		return fmt.Sprintf("%swrite a text in quotes, doubled within those of YAML: ''%s''", names, name)
	}
	return fmt.Sprintf("%swrite a text in quotes: '%s'", names, name)
}

// NoOverload returns a remedy for operands of the wrong types.
func (explainer) NoOverload(types string) string {
	switch {
	case strings.Contains(types, "int") && strings.Contains(types, "double"):
		return "write whole numbers with a fraction, such as 2.0, or convert: double(victim.priority)"
	case strings.Contains(types, "duration") && (strings.Contains(types, "int") || strings.Contains(types, "string")):
		return "write a duration as duration('10m')"
	case strings.Contains(types, "timestamp"):
		return "timestamps can be compared and subtracted: now - victim.start"
	}
	return ""
}

// scopesOf returns the scopes of a name, or of the map that it is a key of.
func scopesOf(name string) schema.Scope {
	for n, s := range names() {
		if n == name || strings.HasPrefix(name, n+".") {
			return s
		}
	}
	return 0
}

// names returns the scopes of every name.
func names() map[string]schema.Scope {
	all := map[string]schema.Scope{schema.Now: schema.All}
	for _, f := range schema.Fields {
		all[f.Name] = f.Scope
	}
	for _, m := range schema.Maps {
		all[m.Name] = m.Scope
	}
	for _, s := range schema.Spans {
		all[s.Name] = schema.Fields[schema.Lookup(s.Of)].Scope
	}
	return all
}

func scopeNames(s schema.Scope) string {
	var list []string
	for _, n := range []struct {
		scope schema.Scope
		name  string
	}{{schema.Eligible, "eligible"}, {schema.Order, "order"}, {schema.Option, "option"}} {
		if s&n.scope != 0 {
			list = append(list, n.name)
		}
	}
	return strings.Join(list, " and ")
}
