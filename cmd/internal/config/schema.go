package config

import (
	"reflect"
	"time"

	"github.com/cede-scheduler/cede/core/model/jsonschema"
)

// Schema returns the JSON Schema of a configuration file.
func Schema() *jsonschema.Schema { return schemaOf(reflect.TypeFor[Config]()) }

// schemaOf returns the schema of a type with the tag koanf. Files may hold numbers as
// texts, because variables of the environment are decoded alike.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return jsonschema.Duration()
	case reflect.TypeFor[Size]():
		return jsonschema.NumberOr(`^[0-9]+ *([KMGT]iB)?$`)
	}
	switch t.Kind() {
	case reflect.Struct:
		object := jsonschema.Object()
		for f := range t.Fields() {
			if name := f.Tag.Get("koanf"); name != "-" {
				object.Set(name, schemaOf(f.Type))
			}
		}
		return object
	case reflect.Slice:
		list := jsonschema.List(schemaOf(t.Elem()))
		if t.Elem().Kind() == reflect.Struct {
			return list
		}
		return jsonschema.AnyOf(list, jsonschema.Text()) // a text is split at commas
	case reflect.Map:
		return jsonschema.Map(schemaOf(t.Elem()))
	case reflect.Bool:
		return &jsonschema.Schema{Types: []string{"boolean", "string"}, Pattern: `^(true|True|TRUE|t|T|false|False|FALSE|f|F|0|1)$`}
	case reflect.Int, reflect.Int64:
		return &jsonschema.Schema{Types: []string{"integer", "string"}, Pattern: `^[-+]?[0-9]+$`}
	case reflect.Float64:
		return jsonschema.NumberOr(`^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$`)
	}
	return jsonschema.Scalar()
}
