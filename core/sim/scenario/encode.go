package scenario

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Format is the encoding of a scenario file.
type Format string

// Supported formats.
const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// Encode writes a file so that Decode returns an equal one. JSON is written with one list
// element per line; YAML is indented for readers. Both are streams: the memory for the text
// does not grow with the file.
func Encode(w io.Writer, f *File, format Format) error {
	return EncodeObserved(w, f, format, func(int, int) {})
}

// EncodeObserved is like Encode, and calls progress with the numbers of list elements that
// are written and that the file contains.
func EncodeObserved(w io.Writer, f *File, format Format, progress func(done, total int)) error {
	fields := encodedFields(f)
	total := 0
	for _, field := range fields {
		total += field.len()
	}
	done := 0
	advance := func(elements int) {
		done += elements
		progress(done, total)
	}
	switch format {
	case JSON:
		return encodeJSON(w, fields, advance)
	case YAML:
		return encodeYAML(w, fields, maxYAMLValues, advance)
	}
	return fmt.Errorf("unknown format %q: expected json or yaml", format)
}

// encodedField is a field of a file that is not omitted.
type encodedField struct {
	name  string
	value reflect.Value
}

// len returns the number of list elements; 0 if the field is not a list.
func (f encodedField) len() int {
	if f.value.Kind() == reflect.Slice {
		return f.value.Len()
	}
	return 0
}

func encodedFields(f *File) (fields []encodedField) {
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		if options != "" && (field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0) {
			continue
		}
		fields = append(fields, encodedField{name, field})
	}
	return fields
}

func encodeJSON(w io.Writer, fields []encodedField, advance func(elements int)) error {
	e := &encoder{w: bufio.NewWriterSize(w, 64<<10), advance: advance}
	e.json = json.NewEncoder(&e.value)
	e.json.SetEscapeHTML(false)
	before := "{\n"
	for _, f := range fields {
		fmt.Fprintf(e.w, "%s%q: ", before, f.name)
		before = ",\n"
		if f.value.Kind() == reflect.Slice {
			e.list(f.value)
		} else {
			e.element(f.value)
		}
	}
	_, _ = e.w.WriteString("\n}\n")
	if e.err != nil {
		return e.err
	}
	return e.w.Flush()
}

// encoder retains the first error of encoding; bufio retains that of the writer.
type encoder struct {
	w       *bufio.Writer
	value   bytes.Buffer
	json    *json.Encoder
	advance func(elements int)
	err     error
}

// list writes a list with one element per line.
func (e *encoder) list(v reflect.Value) {
	before := "[\n"
	for i := range v.Len() {
		_, _ = e.w.WriteString(before)
		before = ",\n"
		e.element(v.Index(i))
		e.advance(1)
	}
	_, _ = e.w.WriteString("\n]")
}

func (e *encoder) element(v reflect.Value) {
	e.value.Reset()
	if err := e.json.Encode(v.Addr().Interface()); err != nil && e.err == nil {
		e.err = err
	}
	_, _ = e.w.Write(bytes.TrimSuffix(e.value.Bytes(), []byte("\n")))
}

// MarshalJSON writes Values as the value if it is set, else Value.
func (c Constraint) MarshalJSON() ([]byte, error) {
	return json.Marshal(operand{c.Attribute, c.Operator, c.operand(), nil})
}

// MarshalJSON adds the weight, which the embedded Constraint would omit.
func (a Affinity) MarshalJSON() ([]byte, error) {
	return json.Marshal(operand{a.Attribute, a.Operator, a.operand(), &a.Weight})
}

type operand struct {
	Attribute string `json:"attribute,omitempty"`
	Operator  string `json:"operator"`
	Value     any    `json:"value,omitempty"`
	Weight    *int   `json:"weight,omitempty"`
}

func (c *Constraint) operand() any {
	switch {
	case c.Values != nil:
		return c.Values
	case c.Value != "":
		return c.Value
	}
	return nil
}

// yamlChunk is the number of list elements that are encoded at a time: a tree of YAML nodes
// takes a hundred times as much memory as its text.
const yamlChunk = 200

// encodeYAML writes at most a number of values, as many as Decode accepts.
func encodeYAML(w io.Writer, fields []encodedField, most int, advance func(elements int)) error {
	check := &yamlCheck{line: 1, most: most}
	for _, f := range fields {
		n := f.len()
		if n <= yamlChunk || f.value.Type().Elem().Kind() != reflect.Struct { // a list of scalars can be one line
			if err := encodeYAMLPart(w, f, false, check); err != nil {
				return err
			}
			advance(n)
			continue
		}
		for from := 0; from < n; from += yamlChunk {
			chunk := encodedField{f.name, f.value.Slice(from, min(from+yamlChunk, n))}
			if err := encodeYAMLPart(w, chunk, from > 0, check); err != nil {
				return err
			}
			advance(chunk.len())
		}
	}
	return nil
}

// encodeYAMLPart encodes a field as JSON first, whose events determine the YAML tree.
// isContinued omits the line with the name of the field. It returns an error if Decode would
// reject the text so far.
func encodeYAMLPart(w io.Writer, f encodedField, isContinued bool, check *yamlCheck) (err error) {
	var text bytes.Buffer
	if err := encodeJSON(&text, []encodedField{f}, func(int) {}); err != nil {
		return err
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fatal: // nested too deep, or too large
			err = &Error{Problems: []Problem{{Message: p.problem.Message, Remedy: p.problem.Remedy}}}
		default:
			panic(p)
		}
	}()
	src := newJSONSource(&text)
	root := yamlNode(src, src.next())
	root.Style = 0
	var part bytes.Buffer
	e := yaml.NewEncoder(&part)
	e.SetIndent(2)
	if err := cmp.Or(e.Encode(root), e.Close()); err != nil {
		return err
	}
	out := part.Bytes()
	if isContinued {
		_, out, _ = bytes.Cut(out, []byte("\n"))
	}
	check.text(out)
	_, err = w.Write(out)
	return err
}

// yamlNode returns the YAML tree of the value that starts with ev.
func yamlNode(src source, ev event) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: string(ev.text)}
	switch ev.kind {
	case kindString:
		node.Tag = "!!str"
		if strings.ContainsFunc(node.Value, needsEscape) {
			node.Style = yaml.DoubleQuotedStyle
		}
	case kindNumber:
		node.Tag = "!!float"
		if _, ok := parseInt(ev.text); ok {
			node.Tag = "!!int"
		}
	case kindBool:
		node.Tag = "!!bool"
	case kindNull:
		node.Tag = "!!null"
	case kindObject:
		node.Kind = yaml.MappingNode
		flow := true
		for ev := src.next(); ev.kind != kindObjectEnd; ev = src.next() {
			key := yamlNode(src, event{kind: kindString, text: ev.text})
			value := yamlNode(src, src.next())
			flow = flow && value.Kind == yaml.ScalarNode
			node.Content = append(node.Content, key, value)
		}
		if flow {
			node.Style = yaml.FlowStyle
		}
	case kindList:
		node.Kind = yaml.SequenceNode
		node.Style = yaml.FlowStyle
		for ev := src.next(); ev.kind != kindListEnd; ev = src.next() {
			child := yamlNode(src, ev)
			if child.Kind != yaml.ScalarNode {
				node.Style = 0
			}
			node.Content = append(node.Content, child)
		}
	}
	return node
}

// needsEscape reports whether a character must be written as an escape sequence.
func needsEscape(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }
