package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
)

const (
	// maxYAMLValues bounds the input of the YAML parser, which builds a tree of about
	// 250 bytes per value before any check can run: two gigabytes.
	maxYAMLValues = 8 << 20
	// maxYAMLVisits bounds the walk of the tree, because aliases repeat values.
	maxYAMLVisits = maxYAMLValues + 2<<20
)

// yamlSource walks the tree of the YAML library. The input is bounded and checked to
// be text that starts with a mapping before the library parses it.
type yamlSource struct {
	stack  []yamlFrame
	root   *yaml.Node
	visits int
	line   int    // of the value returned last
	text   []byte // of the event returned last
}

// yamlFrame is an open mapping or list. The content of a mapping alternates keys and
// values, with merges resolved.
type yamlFrame struct {
	node    *yaml.Node
	content []*yaml.Node
	next    int
}

// newYAMLSource parses the whole document. It panics with a fatal if that fails.
func newYAMLSource(r io.Reader) *yamlSource {
	text := readYAML(r)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	s := &yamlSource{root: parseYAML(decoder, text), line: 1}
	if second := parseYAML(decoder, text); second != nil {
		panic(fatal{problem: Problem{
			Line:    second.Line,
			Message: "a second document starts here: a file holds one scenario",
			Remedy:  "move it to its own file",
		}})
	}
	return s
}

// readYAML reads and checks the input in chunks, so that it can reject an unsuitable
// file of 100 MB after the first chunk.
func readYAML(r io.Reader) []byte {
	var text []byte
	check := yamlCheck{line: 1, most: maxYAMLValues}
	for chunk := 64 << 10; ; chunk = 1 << 20 {
		start := len(text)
		text = slices.Grow(text, chunk)[:start+chunk]
		n, err := io.ReadFull(r, text[start:])
		text = text[:start+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		check.text(text[start:])
		if start == 0 && (ended || err == nil) {
			checkYAMLHead(text, ended)
		}
		switch {
		case ended && !utf8.Valid(text):
			panic(notText(invalidLine(text), "bytes that are not UTF-8"))
		case ended:
			return text
		case err != nil:
			panic(fatalRead(check.line, err))
		}
	}
}

// checkYAMLHead rejects a document that cannot be a mapping. The first line after
// comments and directives must contain a colon, or start a flow mapping, an explicit
// key, an anchor or a tag. A key longer than the head is not supported.
func checkYAMLHead(text []byte, whole bool) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	comments := false
	for number := 1; ; number++ {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		switch content := bytes.TrimSpace(line); {
		case len(content) == 0, string(content) == "---":
		case content[0] == '#', content[0] == '%':
			comments = true
		case content[0] == '-' && string(content[:min(3, len(content))]) == "---":
			return
		case bytes.IndexByte([]byte("{?&!"), content[0]) < 0 && !bytes.Contains(content, []byte(":")):
			panic(notAScenario(number, fmt.Sprintf("%.40q", content)))
		default:
			return
		}
		if !found {
			if comments && !whole {
				return
			}
			panic(fatal{problem: Problem{
				Line:    number,
				Message: "the file is empty: expected a scenario",
				Remedy:  "start with `version: 1` and `name: ...`",
			}})
		}
		text = rest
	}
}

func notAScenario(line int, found string) fatal {
	return fatal{problem: Problem{
		Line:    line,
		Message: "expected a mapping of a scenario's fields, found " + found,
		Remedy:  "start with `version: 1`; check that this is a scenario file",
	}}
}

// yamlCheck bounds the work of the parser. It estimates the number of values from the
// characters that separate them; the estimate is an upper bound.
type yamlCheck struct {
	values, line int
	most         int // values
	last         byte
}

func (y *yamlCheck) text(text []byte) {
	for _, c := range text {
		switch {
		case c <= ' ' || c == 0x7f:
			if y.last == ':' || y.last == '-' {
				y.values += 2
			}
			y.space(c)
		case c == ':' && (y.last == '"' || y.last == '\''):
			y.values += 2
		case c == ',' || c == '[' || c == '{' || c == '&' || c == '*' || c == '?':
			y.values++
		}
		y.last = c
	}
	if y.values > y.most {
		panic(fatal{problem: Problem{
			Line:    y.line,
			Message: "more than 8 million values, which is too large for YAML",
			Remedy:  "write it as JSON, which is read as a stream",
		}})
	}
}

// space counts lines and rejects control characters.
func (y *yamlCheck) space(c byte) {
	switch c {
	case '\n':
		y.line++
	case ' ', '\t', '\r':
	default:
		panic(notText(y.line, describeByte(c)))
	}
}

func notText(line int, found string) fatal {
	return fatal{problem: Problem{
		Line:    line,
		Message: "expected text, found " + found,
		Remedy:  "save the file as UTF-8 text; check that this is a scenario file",
	}}
}

// invalidLine returns the line of the first invalid UTF-8 sequence.
func invalidLine(text []byte) int {
	line := 1
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		text = text[n:]
	}
	return line
}

// parseYAML returns the content of the next document, or nil at the end.
func parseYAML(decoder *yaml.Decoder, text []byte) *yaml.Node {
	var document yaml.Node
	err := func() (err error) {
		defer func() {
			// The library converts its own panics into errors. If a hostile file
			// triggers another panic, the process must survive.
			if p := recover(); p != nil {
				err = fmt.Errorf("unreadable: %v", p)
			}
		}()
		return decoder.Decode(&document)
	}()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		syntax := plainyaml.Syntax(err, text)
		panic(fatal{problem: Problem{
			Line:    syntax.Line,
			Message: "not valid YAML: " + syntax.Message,
			Remedy:  "check indentation, quotes and brackets around this line; the file may be truncated",
		}})
	}
	if len(document.Content) == 0 {
		return nil
	}
	return document.Content[0]
}

func (s *yamlSource) next() event {
	if n := len(s.stack); n > 0 {
		top := &s.stack[n-1]
		if top.next < len(top.content) {
			child := top.content[top.next]
			isKey := top.node.Kind == yaml.MappingNode && top.next%2 == 0
			top.next++
			if isKey {
				return s.key(child)
			}
			return s.value(child)
		}
		s.stack = s.stack[:n-1]
		if top.node.Kind == yaml.MappingNode {
			return event{kind: kindObjectEnd, line: s.line}
		}
		return event{kind: kindListEnd, line: s.line}
	}
	if s.root == nil {
		return event{kind: kindEnd, line: s.line}
	}
	root := s.root
	s.root = nil
	return s.value(root)
}

// visit counts a step and resolves aliases. It panics with a fatal if the limit is exceeded.
func (s *yamlSource) visit(node *yaml.Node) *yaml.Node {
	for {
		if s.visits++; s.visits > maxYAMLVisits {
			panic(fatal{problem: Problem{
				Line:    max(node.Line, 1),
				Message: "aliases expand the file to more than 10 million values",
				Remedy:  "write the values without aliases; check the origin of the file",
			}})
		}
		if node.Line > 0 {
			s.line = node.Line
		}
		if node.Kind != yaml.AliasNode {
			return node
		}
		node = node.Alias
	}
}

func (s *yamlSource) key(node *yaml.Node) event {
	node = s.visit(node)
	if node.Kind != yaml.ScalarNode {
		panic(fatal{problem: Problem{
			Line:    s.line,
			Message: "expected a field name, found " + found(event{kind: nodeKind(node)}),
			Remedy:  "write `field: value`",
		}})
	}
	s.text = append(s.text[:0], node.Value...)
	return event{kind: kindKey, line: s.line, text: s.text}
}

func (s *yamlSource) value(node *yaml.Node) event {
	node = s.visit(node)
	ev := event{kind: nodeKind(node), line: s.line}
	switch node.Kind {
	case yaml.MappingNode:
		s.push(yamlFrame{node: node, content: s.pairs(node, 0)})
	case yaml.SequenceNode:
		s.push(yamlFrame{node: node, content: node.Content})
	default:
		if len(node.Value) > maxText {
			panic(fatal{problem: Problem{
				Line: s.line, Message: "a string of more than 1 MiB", Remedy: "check that this is a scenario file; a closing quote may be missing",
			}})
		}
		s.text = append(s.text[:0], node.Value...)
		ev.text = s.text
	}
	return ev
}

func (s *yamlSource) push(f yamlFrame) {
	if len(s.stack) == maxDepth {
		panic(tooDeep(s.line))
	}
	s.stack = append(s.stack, f)
}

func nodeKind(node *yaml.Node) kind {
	switch node.Kind {
	case yaml.MappingNode:
		return kindObject
	case yaml.SequenceNode:
		return kindList
	}
	switch node.Tag {
	case "!!null":
		return kindNull
	case "!!bool":
		return kindBool
	case "!!int", "!!float":
		return kindNumber
	}
	return kindString // timestamps and private tags as well: their text is the intended value
}

// pairs returns the content of a mapping with merges (<<) resolved: the mapping's own
// keys precede merged ones, and earlier merges precede later ones.
func (s *yamlSource) pairs(node *yaml.Node, depth int) []*yaml.Node {
	merges := false
	for i := 0; i < len(node.Content); i += 2 {
		merges = merges || node.Content[i].Tag == "!!merge"
	}
	if !merges {
		return node.Content
	}
	if depth == maxDepth {
		panic(tooDeep(max(node.Line, 1)))
	}
	var content []*yaml.Node
	have := map[string]bool{}
	for i := 0; i < len(node.Content); i += 2 {
		if key := node.Content[i]; key.Tag != "!!merge" {
			content = append(content, key, node.Content[i+1])
			have[key.Value] = true
		}
	}
	for i := 0; i < len(node.Content); i += 2 {
		if node.Content[i].Tag == "!!merge" {
			content = s.merge(content, have, node.Content[i+1], depth)
		}
	}
	return content
}

// merge appends the entries of a merged mapping, or list of mappings, whose keys are
// not in have.
func (s *yamlSource) merge(content []*yaml.Node, have map[string]bool, from *yaml.Node, depth int) []*yaml.Node {
	from = s.visit(from)
	switch {
	case from.Kind == yaml.SequenceNode && depth < maxDepth:
		for _, each := range from.Content {
			content = s.merge(content, have, each, depth+1)
		}
	case from.Kind == yaml.MappingNode:
		pairs := s.pairs(from, depth+1)
		for i := 0; i < len(pairs); i += 2 {
			s.visit(pairs[i])
			if key := pairs[i]; !have[key.Value] {
				have[key.Value] = true
				content = append(content, key, pairs[i+1])
			}
		}
	default:
		panic(fatal{problem: Problem{
			Line:    s.line,
			Message: "expected a mapping to merge with <<, found " + found(event{kind: nodeKind(from), text: []byte(from.Value)}),
			Remedy:  "write `<<: *anchor`, where the anchor is on a mapping",
		}})
	}
	return content
}
