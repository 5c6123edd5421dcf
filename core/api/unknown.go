package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxUnknown bounds what one request makes us name.
const maxUnknown = 50

// unknownFields appends the paths of what raw says and a value of type t cannot
// hold. The names of fields are compared as encoding/json does: without case.
func unknownFields(list []string, path string, raw any, t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(list) >= maxUnknown || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return list
	}
	switch v := raw.(type) {
	case map[string]any:
		known := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			known = fieldsOf(t)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := join(path, name)
			switch {
			case t.Kind() == reflect.Map:
				list = unknownFields(list, at, v[name], t.Elem())
			case t.Kind() != reflect.Struct:
			case known[strings.ToLower(name)] != nil:
				list = unknownFields(list, at, v[name], known[strings.ToLower(name)])
			case says(v[name]) && len(list) < maxUnknown:
				list = append(list, at)
			}
		}
	case []any:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return list
		}
		for i, element := range v {
			list = unknownFields(list, path+"["+strconv.Itoa(i)+"]", element, t.Elem())
		}
	}
	return list
}

// join adds a name to a path; a name that came from a stranger is bounded.
func join(path, name string) string {
	const most = 100
	if len(name) > most {
		name = name[:most] + "..."
	}
	name = strings.ToValidUTF8(name, "?")
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldsOf is the fields of a struct by their name in lower case.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			maps.Copy(known, fieldsOf(f.Type))
		case name != "":
			known[strings.ToLower(name)] = f.Type
		default:
			known[strings.ToLower(f.Name)] = f.Type
		}
	}
	return known
}

// says is whether a value is more than the absence of one: Nomad's clients send
// every field of a job, most of them null or empty.
func says(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return slices.ContainsFunc(v, says)
	case map[string]any:
		for _, element := range v {
			if says(element) {
				return true
			}
		}
	}
	return false
}
