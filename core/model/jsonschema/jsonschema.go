// Package jsonschema builds JSON Schema documents that describe the files of users. The
// readers of files call it while they list their fields, so that a schema and its reader
// accept the same names and types.
//
// Schemas are values without state. They must not be modified after they became part of
// another schema.
package jsonschema

import (
	"encoding/json"
	"maps"
	"slices"
)

// dialect is the version of JSON Schema that editors support best.
const dialect = "http://json-schema.org/draft-07/schema#"

// A Schema describes a value. The zero value accepts anything.
type Schema struct {
	Dialect       string             `json:"$schema,omitempty"`
	Title         string             `json:"title,omitempty"`
	Description   string             `json:"description,omitempty"`
	Types         []string           `json:"type,omitempty"`
	Enum          []string           `json:"enum,omitempty"`
	MinLength     int                `json:"minLength,omitempty"`
	Pattern       string             `json:"pattern,omitempty"`
	Minimum       *float64           `json:"minimum,omitempty"`
	Maximum       *float64           `json:"maximum,omitempty"`
	MinItems      int                `json:"minItems,omitempty"`
	MaxItems      int                `json:"maxItems,omitempty"`
	Items         *Schema            `json:"items,omitempty"`
	MinProperties int                `json:"minProperties,omitempty"`
	Required      []string           `json:"required,omitempty"`
	Properties    map[string]*Schema `json:"properties,omitempty"`
	// Additional describes the values of other keys than Properties; nil: there are none.
	// It applies to objects.
	Additional *Schema   `json:"-"`
	AnyOf      []*Schema `json:"anyOf,omitempty"`
	// Nullable adds null to the values, which readers treat as an absent field.
	Nullable bool   `json:"-"`
	Ref      string `json:"$ref,omitempty"` // another schema in the place of this one; "#": the document
}

// MarshalJSON returns the schema with its keys in a fixed order.
func (s *Schema) MarshalJSON() ([]byte, error) {
	type plain Schema
	out := struct {
		*plain
		Type       any   `json:"type,omitempty"`
		Enum       []any `json:"enum,omitempty"`
		AnyOf      []any `json:"anyOf,omitempty"`
		Additional any   `json:"additionalProperties,omitempty"`
	}{plain: (*plain)(s)}
	types := s.Types
	if s.Nullable && len(types) > 0 {
		types = append(slices.Clip(types), "null")
	}
	if len(types) == 1 {
		out.Type = types[0]
	} else if len(types) > 1 {
		out.Type = types
	}
	for _, value := range s.Enum {
		out.Enum = append(out.Enum, value)
	}
	for _, one := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, one)
	}
	if s.Nullable && len(s.Enum) > 0 {
		out.Enum = append(out.Enum, nil)
	}
	if s.Nullable && len(s.Types) == 0 && len(s.AnyOf) > 0 {
		out.AnyOf = append(out.AnyOf, &Schema{Types: []string{"null"}})
	}
	if slices.Contains(s.Types, "object") {
		out.Additional = s.Additional
		if s.Additional == nil {
			out.Additional = false
		}
	}
	return json.Marshal(out)
}

// Document returns a copy of a schema that is complete as a file.
func Document(title, description string, s *Schema) *Schema {
	d := *s
	d.Dialect, d.Title, d.Description = dialect, title, description
	return &d
}

// Text returns the schema of a string.
func Text() *Schema { return &Schema{Types: []string{"string"}} }

// Bool returns the schema of true and false.
func Bool() *Schema { return &Schema{Types: []string{"boolean"}} }

// Number returns the schema of a number.
func Number() *Schema { return &Schema{Types: []string{"number"}} }

// Integer returns the schema of a whole number between two bounds.
func Integer(least, most float64) *Schema {
	return &Schema{Types: []string{"integer"}, Minimum: &least, Maximum: &most}
}

// Int32 returns the schema of a signed integer of 32 bits.
func Int32() *Schema { return Integer(-1<<31, 1<<31-1) }

// Scalar returns the schema of a text that may be written without quotes if it looks like
// a number or a boolean.
func Scalar() *Schema { return &Schema{Types: []string{"string", "number", "boolean"}} }

// NumberOr returns the schema of a number, or of a string that matches a pattern.
func NumberOr(pattern string) *Schema {
	return &Schema{Types: []string{"string", "number"}, Pattern: pattern}
}

// Duration returns the schema of a duration in Go's notation, or a number of seconds.
func Duration() *Schema {
	s := NumberOr(DurationPattern)
	s.Description = "a duration such as 90s or 1h30m, or a number of seconds"
	return s
}

// DurationPattern matches a duration in Go's notation.
const DurationPattern = `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// Quantity returns the schema of an amount of a resource: a number in its unit, or a
// quantity such as 2Gi.
func Quantity() *Schema {
	s := NumberOr(`^\+?[0-9.]+([eE][-+]?[0-9]+)?[A-Za-z]*$`)
	s.Minimum = new(0.0)
	return s
}

// OneOf returns the schema of one of some strings.
func OneOf(values ...string) *Schema { return &Schema{Types: []string{"string"}, Enum: values} }

// List returns the schema of a list.
func List(of *Schema) *Schema { return &Schema{Types: []string{"array"}, Items: of} }

// Map returns the schema of a mapping with free keys.
func Map(of *Schema) *Schema { return &Schema{Types: []string{"object"}, Additional: of} }

// Free returns the schema of a mapping with free keys and values.
func Free() *Schema { return Map(&Schema{}) }

// Object returns the schema of a mapping without fields. Set adds them.
func Object() *Schema { return &Schema{Types: []string{"object"}, Properties: map[string]*Schema{}} }

// Set adds a field to an object.
func (s *Schema) Set(name string, field *Schema) { s.Properties[name] = field }

// Require marks fields as required. A text, a list or a free mapping must not be empty, nor null.
func (s *Schema) Require(names ...string) {
	for _, name := range names {
		field := *s.Properties[name]
		field.Nullable = false
		if len(field.Enum) > 0 {
			field.Enum = slices.DeleteFunc(slices.Clone(field.Enum), func(value string) bool { return value == "" })
		} else if slices.Contains(field.Types, "string") {
			field.MinLength = 1
		}
		if slices.Contains(field.Types, "array") {
			field.MinItems = 1
		}
		if slices.Contains(field.Types, "object") && field.Properties == nil {
			field.MinProperties = 1
		}
		s.Set(name, &field)
	}
	s.Required = append(s.Required, names...)
}

// RequireUnless requires a text that is not empty, unless another field has a value.
func (s *Schema) RequireUnless(name, other, value string) {
	named := &Schema{Required: []string{name}, Properties: map[string]*Schema{name: {Types: []string{"string"}, MinLength: 1}}}
	unnamed := &Schema{Required: []string{other}, Properties: map[string]*Schema{other: OneOf(value)}}
	s.AnyOf = []*Schema{named, unnamed}
}

// SetMinimum sets the least value of a number.
func (s *Schema) SetMinimum(name string, least float64) {
	field := *s.Properties[name]
	field.Minimum = &least
	s.Set(name, &field)
}

// Fields returns the names of the fields of an object, ascending.
func (s *Schema) Fields() []string { return slices.Sorted(maps.Keys(s.Properties)) }

// Nullable returns a copy of a schema that accepts null as well.
func Nullable(s *Schema) *Schema {
	n := *s
	n.Nullable = true
	return &n
}

// AnyOf returns the schema of a value that matches one of several schemas.
func AnyOf(list ...*Schema) *Schema { return &Schema{AnyOf: list} }
