package jobspec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
)

// readYAML reads a document into a tree. It returns nil after a problem.
func (r *parser) readYAML(src []byte) *value {
	d := yaml.NewDecoder(bytes.NewReader(src))
	var document yaml.Node
	if err := decodeYAML(d, &document); err != nil {
		if errors.Is(err, io.EOF) {
			r.add(position{1, 1}, "the file is empty: expected a job", "`cede job init` writes an example")
			return nil
		}
		r.add(yamlProblem(err, src))
		return nil
	}
	var second yaml.Node
	if err := decodeYAML(d, &second); !errors.Is(err, io.EOF) {
		at := position{line: second.Line}
		if err != nil {
			r.add(yamlProblem(err, src))
			return nil
		}
		r.add(at, "unexpected second document: a file holds one job", "move it to its own file")
		return nil
	}
	if len(document.Content) == 0 {
		return nil
	}
	t := &yamlTree{parser: r}
	v := t.value(document.Content[0], 0)
	if t.stopped {
		return nil
	}
	return v
}

func decodeYAML(d *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		// The library converts its own panics into errors. If a hostile file triggers
		// another one, it must not terminate the process.
		if p := recover(); p != nil {
			err = fmt.Errorf("unreadable: %v", p)
		}
	}()
	return d.Decode(into)
}

func yamlProblem(err error, src []byte) (at position, message, remedy string) {
	p := plainyaml.Syntax(err, src)
	return position{line: p.Line}, "not valid YAML: " + p.Message, "check indentation, quotes and brackets around this line"
}

// A yamlTree converts YAML nodes into a tree of values, resolving aliases and merges.
type yamlTree struct {
	*parser
	values  int
	stopped bool
}

// stop adds a problem and ends reading. Later calls add nothing.
func (t *yamlTree) stop(at position, message, remedy string) *value {
	if !t.stopped {
		t.add(at, message, remedy)
	}
	t.stopped = true
	return &value{at: at}
}

func (t *yamlTree) value(n *yaml.Node, depth int) *value {
	at := position{n.Line, n.Column}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.values++; t.stopped || t.values > maxValues {
		return t.stop(at, fmt.Sprintf("more than %d values", maxValues), "check that this is a job file; aliases count each time")
	}
	if depth > maxDepth {
		return t.stop(at, fmt.Sprintf("values nested more than %d deep", maxDepth), "check the indentation")
	}
	v := &value{at: at, text: n.Value}
	switch n.Kind {
	case yaml.MappingNode:
		v.kind, v.text = kindObject, ""
		t.mapping(v, n, depth)
	case yaml.SequenceNode:
		v.kind, v.text = kindList, ""
		for _, c := range n.Content {
			v.list = append(v.list, t.value(c, depth+1))
		}
	default:
		v.kind = scalarKind(n.Tag)
		t.checkFinite(v)
	}
	return v
}

// checkFinite rejects numbers that are not finite, which YAML allows, and normalizes
// integers of other bases.
func (r *parser) checkFinite(v *value) {
	if v.kind != kindNumber {
		return
	}
	if _, ok := parseNumber(v.text); !ok {
		n, err := strconv.ParseInt(strings.ReplaceAll(v.text, "_", ""), 0, 64)
		if err != nil {
			r.add(v.at, fmt.Sprintf("invalid number %.40s", v.text), numberRemedy)
		}
		v.text = strconv.FormatInt(n, 10) // 0x1f, 0o17, 0b11
	}
}

func scalarKind(tag string) kind {
	switch tag {
	case "!!null":
		return kindNull
	case "!!bool":
		return kindBool
	case "!!int", "!!float":
		return kindNumber
	}
	return kindText // also timestamps and private tags, which are used as text
}

// mapping adds the fields of a mapping to v: first its own, then those of merged
// mappings that v lacks.
func (t *yamlTree) mapping(v *value, n *yaml.Node, depth int) {
	have := map[string]position{}
	for _, f := range v.fields {
		have[f.name] = f.at
	}
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Tag == "!!merge" {
			continue
		}
		at := position{key.Line, key.Column}
		if key.Kind != yaml.ScalarNode {
			t.add(at, "expected a field name", "write `field: value`")
			continue
		}
		first, twice := have[key.Value]
		switch {
		case twice && own[key.Value]:
			t.add(at, fmt.Sprintf("duplicate field %.100q: first defined on line %d", key.Value, first.line), "remove one of the two")
			continue
		case twice:
			continue // own fields take precedence over merged ones
		}
		have[key.Value], own[key.Value] = at, true
		v.fields = append(v.fields, &field{name: key.Value, at: at, value: t.value(n.Content[i+1], depth+1)})
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == "!!merge" {
			t.merge(v, n.Content[i+1], depth+1)
		}
	}
}

func (t *yamlTree) merge(v *value, from *yaml.Node, depth int) {
	at := position{from.Line, from.Column}
	for from.Kind == yaml.AliasNode {
		from = from.Alias
	}
	if t.values++; t.stopped || t.values > maxValues || depth > maxDepth {
		t.stop(at, "merges (<<) repeat or nest too much", "write the fields in full")
		return
	}
	switch from.Kind {
	case yaml.MappingNode:
		t.mapping(v, from, depth)
	case yaml.SequenceNode:
		for _, each := range from.Content {
			t.merge(v, each, depth+1)
		}
	default:
		t.add(at, "expected a mapping to merge with <<", "write `<<: *anchor`, where the anchor is on a mapping")
	}
}
