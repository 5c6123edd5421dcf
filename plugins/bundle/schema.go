package bundle

import (
	"math"
	"reflect"
	"strings"

	"github.com/cede-scheduler/cede/core/model/jsonschema"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Schema returns the JSON Schema of a manifest. rules describes the field of that name.
func Schema(rules *jsonschema.Schema) *jsonschema.Schema {
	manifest := schemaOf(reflect.TypeFor[Manifest]())
	manifest.Set("version", jsonschema.Nullable(jsonschema.Integer(0, 1))) // 0 and null: absent
	manifest.Set("rules", rules)
	manifest.Set("hooks", jsonschema.List(jsonschema.OneOf(hookNames...)))
	manifest.Properties["build"].Set("lang", jsonschema.OneOf(append([]string{Uses}, Langs...)...))
	setting := manifest.Properties["settings"].Items
	setting.Set("kind", jsonschema.OneOf(sdk.Kinds[1:]...))
	ends := jsonschema.List(jsonschema.Number())
	ends.MaxItems = 2
	setting.Set("range", ends)
	manifest.Require("name")
	limits := manifest.Properties["limits"].Properties
	limits["memory"].Pattern, limits["time"].Pattern = memoryPattern, "^$|"+jsonschema.DurationPattern
	return manifest
}

// memoryPattern matches the amounts of memory of limits.
const memoryPattern = `^([0-9]+ *(KiB|MiB|GiB))?$`

// schemaOf returns the schema of a type with the tag yaml.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		object := jsonschema.Object()
		for f := range t.Fields() {
			if !f.IsExported() {
				continue
			}
			name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			object.Set(name, jsonschema.Nullable(schemaOf(f.Type)))
			if t != reflect.TypeFor[Manifest]() && !strings.Contains(rest, "omitempty") {
				object.Required = append(object.Required, name)
			}
		}
		return object
	case reflect.Slice:
		list := jsonschema.List(schemaOf(t.Elem()))
		if t == reflect.TypeFor[Parts]() {
			return jsonschema.AnyOf(jsonschema.Scalar(), list)
		}
		return list
	case reflect.Map:
		return jsonschema.Free()
	case reflect.Bool:
		return jsonschema.Bool()
	case reflect.Float64:
		return jsonschema.Number()
	case reflect.Int, reflect.Uint64:
		return jsonschema.Integer(0, math.MaxUint64)
	}
	if t == reflect.TypeFor[Kind]() {
		var kinds []string
		for _, k := range Kinds {
			kinds = append(kinds, string(k))
		}
		return jsonschema.OneOf(kinds...)
	}
	return jsonschema.Scalar()
}
