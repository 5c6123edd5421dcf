package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/suggest"
)

// Uses is the language of policies that are composed of others in the manifest.
const Uses = "use"

// UsePrefix marks a composition in the place of a policy's name.
const UsePrefix = "use:"

// A Use names the policies of a composition by hook. A policy is named as on the command
// line: P or P?key=value, or rules: RULES; a path is relative to the manifest.
type Use struct {
	Eligible Parts `yaml:"eligible,omitempty"` // every one must allow a candidate
	Order    Parts `yaml:"order,omitempty"`    // each further one breaks ties of those before it
	Option   Parts `yaml:"option,omitempty"`
	Bindings Parts `yaml:"bindings,omitempty"`

	places map[string]string // where a policy is named first, by its text
}

// Parts is a list of policies; in YAML also a single one.
type Parts []string

// lists returns the policies of each hook.
func (u *Use) lists() map[string]*Parts {
	return map[string]*Parts{"eligible": &u.Eligible, "order": &u.Order, "option": &u.Option, "bindings": &u.Bindings}
}

const expectedPart = "expected a policy such as least-waste, or quoted rules"

// unknownHook returns the message for a key of a composition that is not a hook.
func unknownHook(key string) string {
	hooks := []string{"eligible", "order", "option", "bindings"}
	return fmt.Sprintf("unknown hook %q: ", key) + suggest.DidYouMean(key, hooks, "must be "+suggest.Or(hooks))
}

// record stores where a policy is named, unless it is named before.
func (u *Use) record(ref, place string) {
	if u.places == nil {
		u.places = map[string]string{}
	}
	if u.places[ref] == "" {
		u.places[ref] = place
	}
}

// Place returns where a policy is named first: its hook, after the line of a manifest.
func (u *Use) Place(ref string) string { return cmp.Or(u.places[ref], Uses) }

// UnmarshalYAML implements yaml.Unmarshaler. Its error lists every problem.
func (u *Use) UnmarshalYAML(n *yaml.Node) error {
	*u = Use{}
	var errs []string
	report := func(n *yaml.Node, format string, args ...any) {
		errs = append(errs, fmt.Sprintf("line %d: use"+format, append([]any{n.Line}, args...)...))
	}
	if n.Kind != yaml.MappingNode {
		report(n, ": expected hooks, such as order: least-waste")
	}
	lists := u.lists()
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		list, hook := lists[key.Value], key.Value
		if list == nil {
			report(key, ": %s", unknownHook(hook))
			continue
		}
		for _, e := range partNodes(value) {
			if e.Kind != yaml.ScalarNode || strings.TrimSpace(e.Value) == "" || e.Tag == "!!null" {
				report(e, ".%s: "+expectedPart, hook)
				continue
			}
			ref := strings.TrimSpace(e.Value)
			*list = append(*list, ref)
			u.record(ref, fmt.Sprintf("line %d: use.%s", e.Line, hook))
		}
	}
	if len(errs) > 0 {
		return &yaml.TypeError{Errors: errs}
	}
	return nil
}

// partNodes returns the entries of a list, or a value that is not a list or an empty one.
// Aliases are replaced by the nodes to which they refer.
func partNodes(n *yaml.Node) []*yaml.Node {
	n = resolved(n)
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return []*yaml.Node{n}
	}
	list := make([]*yaml.Node, len(n.Content))
	for i, e := range n.Content {
		list[i] = resolved(e)
	}
	return list
}

// resolved returns the node to which an alias refers, or the node itself.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// MarshalYAML implements yaml.Marshaler.
func (p Parts) MarshalYAML() (any, error) {
	if len(p) == 1 {
		return p[0], nil
	}
	return []string(p), nil
}

// Refs returns every policy once, in the order of the hooks.
func (u *Use) Refs() []string {
	var refs []string
	for _, list := range []Parts{u.Eligible, u.Order, u.Option, u.Bindings} {
		for _, ref := range list {
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// ParseUse parses a composition from a command line, use: HOOK: P; HOOK: [P, Q], with hooks
// separated by semicolons or line ends. Quotes enclose a policy that contains one of ,;]. The
// error lists every problem. The composition holds the valid policies even then.
func ParseUse(text string) (*Use, error) {
	var u Use
	var errs []error
	report := func(format string, args ...any) { errs = append(errs, fmt.Errorf("use: "+format, args...)) }
	lists := u.lists()
	for _, entry := range splitOutsideQuotes(strings.TrimPrefix(text, UsePrefix), ";\n") {
		if entry == "" {
			continue
		}
		hook, value, ok := strings.Cut(entry, ":")
		hook = strings.TrimSpace(hook)
		list := lists[hook]
		switch {
		case !ok:
			report("expected HOOK: P instead of %q", entry)
		case list == nil:
			report("%s", unknownHook(hook))
		case *list != nil:
			report("%s is given twice", hook)
		default:
			value = strings.TrimSpace(value)
			isList := strings.HasPrefix(value, "[")
			if at := openQuote(value); at >= 0 {
				report("%s: the text %s has no end", hook, value[at:])
				if value = strings.TrimRight(value[:at], " ,"); value == "" || value == "[" {
					continue
				}
			} else if isList && !strings.HasSuffix(value, "]") {
				report("%s: the list %s has no closing bracket", hook, value)
			}
			if isList && !strings.HasSuffix(value, "]") {
				value += "]"
			}
			*list = inlineParts(value)
			if slices.Contains(*list, "") {
				report("%s: "+expectedPart, hook)
				*list = slices.DeleteFunc(*list, func(p string) bool { return p == "" })
			}
			for _, ref := range *list {
				u.record(ref, "use: "+hook)
			}
		}
	}
	if len(errs) == 0 && len(u.Refs()) == 0 {
		report("name at least one policy, such as order: least-waste")
	}
	return &u, errors.Join(errs...)
}

// inlineParts parses P or [P, Q], with or without quotes around each.
func inlineParts(value string) Parts {
	inner, ok := strings.CutPrefix(value, "[")
	list := []string{value}
	if inner, closed := strings.CutSuffix(inner, "]"); ok && closed {
		list = splitOutsideQuotes(inner, ",")
	}
	for i, p := range list {
		if n := len(p); n >= 2 && (p[0] == '\'' || p[0] == '"') && p[n-1] == p[0] {
			list[i] = p[1 : n-1]
		}
	}
	return list
}

// splitOutsideQuotes splits a text at separators outside of quotes, and removes the spaces
// around each element.
func splitOutsideQuotes(text, separators string) []string {
	var list []string
	quote, from := rune(0), 0
	for i, c := range text {
		switch {
		case quote != 0 || c == '\'' || c == '"':
			quote = quoteAfter(quote, c)
		case strings.ContainsRune(separators, c):
			list = append(list, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(list, strings.TrimSpace(text[from:]))
}

// quoteAfter returns the quote that is open after a character; 0: none.
func quoteAfter(quote, c rune) rune {
	switch {
	case quote == c:
		return 0
	case quote == 0 && (c == '\'' || c == '"'):
		return c
	}
	return quote
}

// openQuote returns the position of a quote that has no end; -1: there is none.
func openQuote(text string) int {
	quote, at := rune(0), 0
	for i, c := range text {
		if quote == 0 {
			at = i
		}
		quote = quoteAfter(quote, c)
	}
	if quote == 0 {
		return -1
	}
	return at
}

// PathOf returns the path of a policy that is named in the manifest in dir, without its
// settings. It returns false if the text has the form of rules or a name; a name can still
// be that of a folder in dir.
func PathOf(ref, dir string) (path string, ok bool) {
	if strings.Contains(ref, ": ") || strings.HasSuffix(ref, ":") {
		return "", false
	}
	path, _, _ = strings.Cut(ref, "?")
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, filepath.FromSlash(path))
	}
	return path, true
}
