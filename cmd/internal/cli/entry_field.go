package cli

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entryField is a field that an entry may have. read takes its value, or says
// what is wrong with it and what to write.
type entryField struct {
	name string
	read func(value *yaml.Node) (wrong string)
}

// nameMissing is said of an entry that has none.
const nameMissing = "name is missing; add one of letters, digits, ., _ and -"

// fields reads the fields of an entry, what by its kind, and tells which it has.
func (ps *entryProblems) fields(n *yaml.Node, what string, known []entryField) (given map[string]bool) {
	given = map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := uncapital(key.Value)
		at := slices.IndexFunc(known, func(f entryField) bool { return f.name == name })
		if at < 0 {
			names := namesOf(known, func(f entryField) string { return f.name })
			ps.add(key.Line, "%s has no field %q; known are %s", what, key.Value, strings.Join(names, ", "))
			continue
		}
		given[name] = true
		if wrong := known[at].read(value); wrong != "" {
			ps.add(value.Line, "%s: %s %s", key.Value, written(value), wrong)
		}
	}
	return given
}

// written is a value as an error names it.
func written(value *yaml.Node) string {
	switch value.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", value.Value)
}

// into reads a value of Go's type; remedy is what to write where it is none.
func into[T any](to *T, remedy string) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if value.Decode(to) != nil {
			return "is not what it takes; " + remedy
		}
		return ""
	}
}

func intoText(to *string) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if value.Kind != yaml.ScalarNode {
			return "is no text; write one"
		}
		*to = value.Value
		return ""
	}
}

// intoOneOf reads one of several words.
func intoOneOf(to *string, words ...string) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if !slices.Contains(words, value.Value) {
			return "is not known; write " + oneOf(words)
		}
		*to = value.Value
		return ""
	}
}
