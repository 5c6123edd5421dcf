package generate

import (
	"reflect"
	"slices"
)

// fieldsOf returns the YAML fields of a type of the spec, for messages.
func fieldsOf(name string) []string {
	for _, v := range []any{
		Spec{}, NodeShape{}, Device{}, Band{}, Class{}, Arrival{}, DeviceRequest{}, Spread{}, Choose{}, Constraint{}, Failure{},
	} {
		t := reflect.TypeOf(v)
		if t.Name() != name {
			continue
		}
		fields := appendFields(nil, t)
		slices.Sort(fields)
		return fields
	}
	return nil
}

// appendFields appends the fields of a type and of the types that it contains inline.
func appendFields(fields []string, t reflect.Type) []string {
	for field := range t.Fields() {
		switch tag := field.Tag.Get("yaml"); {
		case field.Anonymous:
			fields = appendFields(fields, field.Type)
		case tag != "":
			fields = append(fields, tag)
		}
	}
	return fields
}
