package steps

import (
	"math"
	"reflect"
	"unicode"
)

// columnsOf returns the fields of a struct by name in lower camel case, without empty lists
// and objects. Numbers that JSON cannot hold are null.
func columnsOf(of any) map[string]any {
	object, _ := plain(reflect.ValueOf(of)).(map[string]any)
	return object
}

func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Struct:
		return plainStruct(v)
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plain(v.Index(i))
		}
		return list
	case reflect.Map:
		object := map[string]any{}
		for _, key := range v.MapKeys() {
			object[key.String()] = plain(v.MapIndex(key))
		}
		return object
	case reflect.Float64:
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return nil
		}
	}
	return v.Interface()
}

func plainStruct(v reflect.Value) map[string]any {
	object := map[string]any{}
	for f, value := range v.Fields() {
		if f.IsExported() && !isEmpty(value) {
			name := []rune(f.Name)
			name[0] = unicode.ToLower(name[0])
			object[string(name)] = plain(value)
		}
	}
	return object
}

// isEmpty reports whether a value holds no element.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || isEmpty(v.Elem())
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Array:
		for i := range v.Len() {
			if !isEmpty(v.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for _, f := range v.Fields() {
			if !isEmpty(f) {
				return false
			}
		}
		return true
	}
	return false
}
