package jobspec

import (
	"fmt"
	"strings"
)

// All three syntaxes are read into one tree, whose values carry their positions.

// A kind is the type of a value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// A value is one value of a file.
type value struct {
	kind    kind
	at      position
	text    string // source text of a scalar
	list    []*value
	fields  []*field
	labels  []label // of an HCL block
	invalid bool    // it could not be read, and its problem has been added
}

// A field is a key and its value. Each occurrence of a repeated block is a field.
type field struct {
	name  string
	at    position
	block bool
	value *value
}

// A label is a string between the type of an HCL block and its brace.
type label struct {
	text string
	at   position
}

const (
	// maxSize is the maximum size of a job file in bytes.
	maxSize = 1 << 20
	// maxDepth is the maximum nesting depth of values.
	maxDepth = 64
	// maxValues is the maximum number of values of a file. Aliases count at each use.
	maxValues = 100_000
)

// describe returns a description of the value for the "found" part of messages.
func (v *value) describe() string {
	switch v.kind {
	case kindNull:
		return "null"
	case kindBool:
		return v.text
	case kindNumber:
		return fmt.Sprintf("number %.40s", v.text)
	case kindText:
		return fmt.Sprintf("string %.40q", v.text)
	case kindList:
		return "a list"
	}
	if v.labels != nil {
		return "a block"
	}
	return "a mapping"
}

// plain returns the value in the types that encoding/json uses for any.
func (v *value) plain() any {
	switch v.kind {
	case kindBool:
		return strings.EqualFold(v.text, "true")
	case kindNumber:
		if n, ok := parseInteger(v.text); ok {
			return n
		}
		f, _ := parseNumber(v.text) // checkFinite rejects other numbers
		return f
	case kindText:
		return v.text
	case kindList:
		list := make([]any, len(v.list))
		for i, e := range v.list {
			list[i] = e.plain()
		}
		return list
	case kindObject:
		return v.plainObject()
	}
	return nil
}

// plainObject returns the fields as a map. Repeated fields become a list.
func (v *value) plainObject() map[string]any {
	m := map[string]any{}
	times := map[string]int{}
	for _, f := range v.fields {
		p := f.value.plain()
		switch times[f.name]++; times[f.name] {
		case 1:
			m[f.name] = p
		case 2:
			m[f.name] = []any{m[f.name], p}
		default:
			m[f.name] = append(m[f.name].([]any), p)
		}
	}
	return m
}
