package scenario

import (
	"bufio"
	"bytes"
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

// Encode writes a file so that Decode returns an equal one. JSON is written as a
// stream with one list element per line; YAML is indented for readers.
func Encode(w io.Writer, f *File, format Format) error {
	switch format {
	case JSON:
		return encodeJSON(w, f)
	case YAML:
		return encodeYAML(w, f)
	}
	return fmt.Errorf("unknown format %q: expected json or yaml", format)
}

func encodeJSON(w io.Writer, f *File) error {
	e := &encoder{w: bufio.NewWriterSize(w, 64<<10)}
	e.json = json.NewEncoder(&e.value)
	e.json.SetEscapeHTML(false)
	v := reflect.ValueOf(f).Elem()
	before := "{\n"
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		if options != "" && (field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0) {
			continue
		}
		fmt.Fprintf(e.w, "%s%q: ", before, name)
		before = ",\n"
		if field.Kind() == reflect.Slice {
			e.list(field)
		} else {
			e.element(field)
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
	w     *bufio.Writer
	value bytes.Buffer
	json  *json.Encoder
	err   error
}

// list writes a list with one element per line.
func (e *encoder) list(v reflect.Value) {
	before := "[\n"
	for i := range v.Len() {
		_, _ = e.w.WriteString(before)
		before = ",\n"
		e.element(v.Index(i))
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

// encodeYAML encodes as JSON first, whose events determine the YAML tree.
func encodeYAML(w io.Writer, f *File) (err error) {
	var text bytes.Buffer
	if err := encodeJSON(&text, f); err != nil {
		return err
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fatal: // nested too deep, or a string too long: Decode would reject it as well
			err = &Error{Problems: []Problem{{Message: p.problem.Message, Remedy: p.problem.Remedy}}}
		default:
			panic(p)
		}
	}()
	src := newJSONSource(&text)
	root := yamlNode(src, src.next())
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return err
	}
	return e.Close()
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
