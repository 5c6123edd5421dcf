package rest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// MaxUnknownFields is the maximum number of unknown fields in one error.
const MaxUnknownFields = 50

// unknownFields appends the paths of fields of raw that a value of type t cannot
// hold. Field names are compared without case, as encoding/json does.
func unknownFields(list []string, path string, raw any, t reflect.Type) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(list) >= MaxUnknownFields || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return list
	}
	switch v := raw.(type) {
	case map[string]any:
		known := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			known = Fields(t)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := JoinPath(path, name)
			switch {
			case t.Kind() == reflect.Map:
				list = unknownFields(list, at, v[name], t.Elem())
			case t.Kind() != reflect.Struct:
			case known[strings.ToLower(name)] != nil:
				list = unknownFields(list, at, v[name], known[strings.ToLower(name)])
			case IsMeaningful(v[name]) && len(list) < MaxUnknownFields:
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

// JoinPath appends a name to a path. It truncates names, because clients choose them.
func JoinPath(path, name string) string {
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

// Fields returns the types of a struct's fields by JSON name in lower case.
func Fields(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			maps.Copy(known, Fields(f.Type))
		case name != "":
			known[strings.ToLower(name)] = f.Type
		default:
			known[strings.ToLower(f.Name)] = f.Type
		}
	}
	return known
}

// IsMeaningful reports whether a value differs from null, false, zero and empty.
// Nomad's clients send every field of a job, most of them null or empty.
func IsMeaningful(v any) bool {
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
		return slices.ContainsFunc(v, IsMeaningful)
	case map[string]any:
		for _, element := range v {
			if IsMeaningful(element) {
				return true
			}
		}
	}
	return false
}
