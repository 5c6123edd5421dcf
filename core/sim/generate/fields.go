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
		var fields []string
		for field := range t.Fields() {
			if tag := field.Tag.Get("yaml"); tag != "" {
				fields = append(fields, tag)
			}
		}
		slices.Sort(fields)
		return fields
	}
	return nil
}
