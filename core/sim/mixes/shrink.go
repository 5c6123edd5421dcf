package mixes

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Shrink returns a smaller scenario for which fails still returns true: it removes list
// entries and clears fields one after another while that holds. fails is called with valid
// scenarios only. If f itself is not valid, Shrink returns it.
func Shrink(f *scenario.File, fails func(*scenario.File) bool) *scenario.File {
	best := f
	for smaller := true; smaller; {
		smaller = false
		for at := 0; ; at++ {
			next, err := clone(best)
			if err != nil {
				return best
			}
			step := reducer{at: at}
			step.reduce(reflect.ValueOf(next).Elem())
			if !step.done {
				break
			}
			if valid, err := clone(next); err == nil && fails(valid) {
				best, smaller = valid, true
				at--
			}
		}
	}
	return best
}

// reducer applies the removal at a position in the order of the fields.
type reducer struct {
	at   int
	done bool
}

// reached counts one possible removal, and reports whether it is the one to apply.
func (r *reducer) reached() bool {
	if r.done {
		return false
	}
	r.at--
	r.done = r.at < 0
	return r.done
}

func (r *reducer) reduce(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			if r.reached() {
				v.Set(reflect.AppendSlice(v.Slice(0, i), v.Slice(i+1, v.Len())))
				return
			}
		}
		for i := range v.Len() {
			r.reduce(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			if r.reached() {
				v.SetMapIndex(key, reflect.Value{})
				return
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			if k := field.Kind(); k != reflect.Slice && k != reflect.Struct && !field.IsZero() && v.Type().Field(i).Name != "Version" && r.reached() {
				field.SetZero()
				return
			}
			r.reduce(field)
		}
	}
}

// clone returns a deep copy, or an error if the scenario is not valid.
func clone(f *scenario.File) (*scenario.File, error) {
	var text bytes.Buffer
	if err := scenario.Encode(&text, f, scenario.JSON); err != nil {
		return nil, err
	}
	return scenario.Decode(f.Name, &text)
}
