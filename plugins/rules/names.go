package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// undeclared explains an unknown name around a position, and returns where it begins.
func undeclared(text string, offset int, scope schema.Scope) (at int, reason, hint string) {
	runes := []rune(text)
	at = min(offset, len(runes))
	isName := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '.' }
	for at > 0 && isName(runes[at-1]) {
		at--
	}
	end := at
	for end < len(runes) && isName(runes[end]) {
		end++
	}
	name := string(runes[at:end])
	if end < len(runes) && runes[end] == '(' {
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
			name = name[dot+1:]
		}
		return at, fmt.Sprintf("unknown function %q", name), "docs/reference/rules.md lists the functions"
	}
	if rules := scopesOf(name); rules != 0 && rules&scope == 0 {
		return at, fmt.Sprintf("%s cannot be used here", name), "it can be used in " + scopeNames(rules)
	}
	hint = "docs/reference/rules.md lists the names"
	if close := similar(name, scope); close != "" {
		hint = fmt.Sprintf("did you mean %s?", close)
	}
	return at, fmt.Sprintf("unknown name %q", name), hint
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

// similar returns the known name that is closest to an unknown one, or "".
func similar(name string, scope schema.Scope) string {
	best, least := "", len(name)/2+1
	var known []string
	for n, s := range names() {
		if s&scope != 0 {
			known = append(known, n)
		}
	}
	slices.Sort(known)
	for _, n := range known {
		d := distance(name, n)
		if strings.HasPrefix(n, name) && len(name) > len("victim.") { // it is abbreviated
			d = 0
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// distance returns the number of characters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
