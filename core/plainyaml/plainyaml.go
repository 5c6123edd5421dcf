package plainyaml

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Problem is one error of the library.
type Problem struct {
	Line    int // 0 if the library reports none
	Message string
	// Unknown reports whether the problem is an unknown field. Field is its name and Fields are
	// the valid ones then.
	Unknown bool
	Field   string
	Fields  []string
	// Syntax reports whether the text is not YAML, as opposed to a value of another type.
	Syntax bool
}

var (
	yamlLine     = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)
	unknownField = regexp.MustCompile(`^field (.*) not found in type (\S+)$`)
	wrongType    = regexp.MustCompile("^cannot unmarshal !!(\\w+) (`.*` )?into (.*)$")
)

// Problems returns the problems in an error of decoding into a value, by line. An error of
// another kind is one problem.
func Problems(err error, into any) []Problem {
	texts, isSyntax := []string{err.Error()}, true
	if all, ok := errors.AsType[*yaml.TypeError](err); ok {
		texts, isSyntax = all.Errors, false
	}
	types := map[string]reflect.Type{}
	collect(types, reflect.TypeOf(into))
	var problems []Problem
	for _, text := range texts {
		m := yamlLine.FindStringSubmatch(text)
		p := Problem{Message: strings.TrimSpace(text[len(m[0]):]), Syntax: isSyntax}
		p.Line, _ = strconv.Atoi(m[1]) // 0 without a line
		if m := unknownField.FindStringSubmatch(p.Message); m != nil {
			p = unknown(p.Line, m[1], fieldsOf(types[m[2]]))
		} else if m := wrongType.FindStringSubmatch(p.Message); m != nil {
			value := strings.TrimSpace(fmt.Sprintf("%s %.60s", valueNames[m[1]], strings.Trim(m[2], "` ")))
			p.Message = fmt.Sprintf("expected %s, found %s", typeName(types[m[3]], m[3]), value)
		}
		problems = append(problems, p)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	return problems
}

// Syntax returns the problem of a text that is not YAML, with a line of it. The library counts
// lines from 0 in its parser and from 1 in its scanner. If the error is at the end of a value,
// it reports the start of that value, and it reports no line for some errors.
func Syntax(err error, text []byte) Problem {
	p := Problems(err, nil)[0]
	switch {
	case strings.HasPrefix(p.Message, "unknown anchor '"):
		name, _, _ := strings.Cut(strings.TrimPrefix(p.Message, "unknown anchor '"), "'")
		p.Line = lineWith(text, 1, regexp.MustCompile(`(?:^|[\s\[,{])\*`+regexp.QuoteMeta(name)))
		p.Message += "; write a text that starts with * in quotes"
	case p.Message == "found a tab character that violates indentation":
		p.Line = lineWith(text, p.Line, regexp.MustCompile(`^ *\t`))
		p.Message = "found a tab in the indentation"
	case fromParser.MatchString(p.Message):
		p.Line++
	}
	lines := bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) + 1
	p.Line = min(max(p.Line, 1), lines)
	return p
}

// fromParser matches messages of the library's parser, as opposed to its scanner.
var fromParser = regexp.MustCompile(`^did not find expected (?:',' or|'-' indicator|<|key|node content)|^found (?:duplicate %|incompatible YAML|undefined tag handle)`)

// lineWith returns the first line at or after a number that matches the pattern, or that
// number if none does.
func lineWith(text []byte, from int, pattern *regexp.Regexp) int {
	number := 0
	for line := range bytes.Lines(text) {
		if number++; number >= from && pattern.Match(line) {
			return number
		}
	}
	return from
}

// Fractions returns the numbers of a document of which the library would drop the fraction: the
// fields that they set in a value are integers.
func Fractions(node *yaml.Node, into reflect.Type) (problems []Problem) {
	walk(node, into, map[setting]bool{}, func(node *yaml.Node, into reflect.Type) {
		if isInteger := into.Kind() >= reflect.Int && into.Kind() <= reflect.Uint64; isInteger && node.ShortTag() == "!!float" {
			if x, err := strconv.ParseFloat(node.Value, 64); err == nil && x != math.Trunc(x) {
				problems = append(problems, Problem{Line: node.Line, Message: fmt.Sprintf("expected %s, found the number %.60s", typeName(into, ""), node.Value)})
			}
		}
	})
	return problems
}

// RemoveDuplicates removes the second value of each key that is given twice, at any depth, and
// returns the problems. The library decodes no value of such a mapping, which hides the other
// problems of the document.
func RemoveDuplicates(node *yaml.Node) (problems []Problem) {
	first := map[string]int{}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); {
		key := node.Content[i]
		line, duplicate := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
		case duplicate:
			problems = append(problems, Problem{Line: key.Line, Message: fmt.Sprintf("%s is given twice, first on line %d; remove one of the two", printable(key.Value), line)})
			node.Content = slices.Delete(node.Content, i, i+2)
			continue
		default:
			first[key.Value] = key.Line
		}
		i += 2
	}
	for _, below := range node.Content {
		problems = append(problems, RemoveDuplicates(below)...)
	}
	return problems
}

// printable returns a key as it is, or in quotes if it is empty, long, or contains characters that
// would change the output, such as line ends and escape sequences.
func printable(key string) string {
	if quoted := fmt.Sprintf("%.60q", key); key == "" || len(quoted) != len(key)+2 {
		return quoted
	}
	return key
}

// UnknownFields returns the fields of a document that a value does not have, as a decoder with
// KnownFields does. Types with a decoder of their own report theirs.
func UnknownFields(node *yaml.Node, into reflect.Type) (problems []Problem) {
	walk(node, into, map[setting]bool{}, func(node *yaml.Node, into reflect.Type) {
		fields := fieldsOf(into)
		for i := 0; node.Kind == yaml.MappingNode && fields != nil && i+1 < len(node.Content); i += 2 {
			if key := node.Content[i]; key.Kind == yaml.ScalarNode && fields[key.Value] == nil && !isMerge(key) {
				problems = append(problems, unknown(key.Line, key.Value, fields))
			}
		}
	})
	return problems
}

// A setting is a node that sets a value of a type.
type setting struct {
	node *yaml.Node
	into reflect.Type
}

// walk calls visit for every node that sets a part of a value, with the type of that part: aliases
// and merged mappings as the nodes to which they refer. seen contains the settings that were
// visited, because a node may contain itself. Types with a decoder of their own are not visited.
func walk(node *yaml.Node, into reflect.Type, seen map[setting]bool, visit func(*yaml.Node, reflect.Type)) {
	for into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if seen[setting{node, into}] || reflect.PointerTo(into).Implements(unmarshaler) {
		return
	}
	seen[setting{node, into}] = true
	visit(node, into)
	fields := fieldsOf(into)
	for i, child := range node.Content {
		switch {
		case node.Kind == yaml.DocumentNode:
			walk(child, into, seen, visit)
		case node.Kind == yaml.SequenceNode && into.Kind() == reflect.Slice:
			walk(child, into.Elem(), seen, visit)
		case node.Kind == yaml.MappingNode && fields != nil && i%2 == 1:
			switch key := node.Content[i-1]; {
			case fields[key.Value] != nil:
				walk(child, fields[key.Value], seen, visit)
			case isMerge(key) && child.Kind == yaml.SequenceNode:
				for _, merged := range child.Content {
					walk(merged, into, seen, visit)
				}
			case isMerge(key):
				walk(child, into, seen, visit)
			}
		}
	}
}

// isMerge reports whether the value of a key is merged into the mapping with the key.
func isMerge(key *yaml.Node) bool { return key.ShortTag() == "!!merge" }

var unmarshaler = reflect.TypeFor[yaml.Unmarshaler]()

// unknown returns the problem of an unknown field.
func unknown(line int, name string, fields map[string]reflect.Type) Problem {
	return Problem{Line: line, Message: fmt.Sprintf("unknown field %.60q", name), Unknown: true, Field: name, Fields: slices.Sorted(maps.Keys(fields))}
}

// String returns the problem with its line, and with the valid fields if one is unknown.
func (p Problem) String() string {
	text := p.Message
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	if len(p.Fields) > 0 {
		text += ": must be " + strings.Join(p.Fields, ", ")
	}
	return text
}

// collect adds a type and those that it contains, by the names that the library prints.
func collect(types map[string]reflect.Type, t reflect.Type) {
	if t == nil || types[t.String()] != nil {
		return
	}
	types[t.String()] = t
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		collect(types, t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			collect(types, field.Type)
		}
	}
}

// fieldsOf returns the types of the YAML fields of a type and of those that it contains inline.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for field := range t.Fields() {
		switch name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); {
		case field.Anonymous:
			maps.Copy(fields, fieldsOf(field.Type))
		case name != "":
			fields[name] = field.Type
		}
	}
	return fields
}

var valueNames = map[string]string{
	"str": "the string", "int": "the number", "float": "the number", "bool": "the boolean",
	"seq": "a list", "map": "a set of fields", "null": "nothing", "timestamp": "the date",
}

// typeName returns a readable name of a Go type. t is nil if only its name is known.
func typeName(t reflect.Type, name string) string {
	kind := name
	if t != nil {
		kind = t.Kind().String()
	}
	switch {
	case strings.HasPrefix(kind, "[]"), kind == "slice", kind == "array":
		return "a list"
	case strings.HasPrefix(kind, "map"), kind == "struct", t == nil && strings.Contains(kind, "."):
		return "fields"
	case strings.HasPrefix(kind, "uint"):
		return "an integer of 0 or more"
	case strings.HasPrefix(kind, "int"):
		return "an integer"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	}
	return "a string"
}
