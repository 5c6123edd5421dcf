package jobspec

import (
	"fmt"
	"strings"
)

// The three syntaxes are read into one tree, whose values know where they stand.

// kind is what a value is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// value is one value of a file.
type value struct {
	kind    kind
	at      position
	text    string // of a scalar, as it is written
	list    []*value
	fields  []*field
	labels  []label // of an HCL block
	invalid bool    // it could not be read, which was told
}

// field is a key and its value. A block that stands several times is several
// fields.
type field struct {
	name  string
	at    position
	block bool
	value *value
}

// label is what stands between an HCL block's name and its brace.
type label struct {
	text string
	at   position
}

const (
	// maxSize is the largest job file, in bytes.
	maxSize = 1 << 20
	// maxDepth bounds how far values are nested.
	maxDepth = 64
	// maxValues bounds a file's values, aliases counted each time.
	maxValues = 100_000
)

// describe names what stands in place of what was expected.
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

// plain is a free-form value as encoding/json would write it.
func (v *value) plain() any {
	switch v.kind {
	case kindBool:
		return strings.EqualFold(v.text, "true")
	case kindNumber:
		if n, ok := parseInteger(v.text); ok {
			return n
		}
		f, _ := parseNumber(v.text) // readers of files refuse what is none
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

// plainObject makes a list of what stands several times.
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
