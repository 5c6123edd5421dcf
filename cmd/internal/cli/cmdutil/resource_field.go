package cmdutil

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/suggest"
)

// A FileField is a field of an entry. Read stores its value, or returns a problem and its
// remedy.
type FileField struct {
	Name string
	Read func(value *yaml.Node) (wrong string)
}

// NameRequired is the problem of an entry without a name.
const NameRequired = "name is required, of letters, digits, ., _ and -"

// ParseFields reads the fields of an entry and returns the set of present ones.
func (ps *FileProblems) ParseFields(n *yaml.Node, known []FileField) (given map[string]bool) {
	given = map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := LowerFirst(key.Value)
		at := slices.IndexFunc(known, func(f FileField) bool { return f.Name == name })
		if at < 0 {
			names := NamesOf(known, func(f FileField) string { return f.Name })
			ps.Add(key.Line, "unknown field %q; %s", key.Value, suggest.Field(name, names))
			continue
		}
		given[name] = true
		if wrong := known[at].Read(value); wrong != "" {
			ps.Add(value.Line, "%s: invalid value %s: %s", key.Value, describeValue(value), wrong)
		}
	}
	return given
}

// describeValue returns a value as messages show it.
func describeValue(value *yaml.Node) string {
	switch value.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", value.Value)
}

// DecodeInto reads a value of a Go type; noun is part of the message if it has another
// type.
func DecodeInto[T any](to *T, noun string) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if value.Decode(to) != nil {
			return "expected " + noun
		}
		return ""
	}
}

// StringInto returns a parser of a field that stores a string in to. The parser returns
// the problem of the value, or "".
func StringInto(to *string) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if value.Kind != yaml.ScalarNode {
			return "expected a string"
		}
		*to = value.Value
		return ""
	}
}

// OneOfInto reads one of several words.
func OneOfInto(to *string, words ...string) func(*yaml.Node) string {
	return func(value *yaml.Node) string {
		if !slices.Contains(words, value.Value) {
			return "expected " + JoinOr(words)
		}
		*to = value.Value
		return ""
	}
}
