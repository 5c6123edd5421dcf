package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/sdk/client"
)

// JobDiff returns the differences between two specifications of a job. before is nil
// if the job is new. Only differences are listed.
func JobDiff(before, after *client.Job) *client.JobDiff {
	out := &client.JobDiff{ID: after.ID}
	var d difference
	d.structs(pointee(before), pointee(after), "TaskGroups", "Stop", "Status", "StatusDescription", "Stable", "Version", "SubmitTime", "CreateIndex", "ModifyIndex", "JobModifyIndex")
	if before != nil && before.Stop != after.Stop {
		d.value("Stop", strconv.FormatBool(before.Stop), strconv.FormatBool(after.Stop))
	}
	out.Fields, out.Objects = d.fields, d.objects
	var old []*client.TaskGroup
	if before != nil {
		old = before.TaskGroups
	}
	pairs(old, after.TaskGroups, func(g *client.TaskGroup) string { return g.Name }, func(name string, a, b *client.TaskGroup) {
		if g := groupDiff(name, a, b); g.Type != client.DiffNone {
			out.TaskGroups = append(out.TaskGroups, g)
		}
	})
	out.Type = diffType(before != nil, true, !d.empty() || len(out.TaskGroups) > 0)
	return out
}

func groupDiff(name string, before, after *client.TaskGroup) *client.TaskGroupDiff {
	out := &client.TaskGroupDiff{Name: name}
	var d difference
	d.structs(pointee(before), pointee(after), "Tasks")
	out.Fields, out.Objects = d.fields, d.objects
	var a, b []*client.Task
	if before != nil {
		a = before.Tasks
	}
	if after != nil {
		b = after.Tasks
	}
	pairs(a, b, func(t *client.Task) string { return t.Name }, func(name string, a, b *client.Task) {
		var d difference
		d.structs(pointee(a), pointee(b))
		if kind := diffType(a != nil, b != nil, !d.empty()); kind != client.DiffNone {
			out.Tasks = append(out.Tasks, &client.TaskDiff{Type: kind, Name: name, Fields: d.fields, Objects: d.objects})
		}
	})
	out.Type = diffType(before != nil, after != nil, !d.empty() || len(out.Tasks) > 0)
	return out
}

// pairs passes the elements of two lists with the same name to visit, those of after
// first. An element without a counterpart is paired with nil.
func pairs[T any](before, after []*T, nameOf func(*T) string, visit func(name string, before, after *T)) {
	find := func(list []*T, name string) *T {
		if at := slices.IndexFunc(list, func(x *T) bool { return nameOf(x) == name }); at >= 0 {
			return list[at]
		}
		return nil
	}
	for _, b := range after {
		visit(nameOf(b), find(before, nameOf(b)), b)
	}
	for _, a := range before {
		if find(after, nameOf(a)) == nil {
			visit(nameOf(a), a, nil)
		}
	}
}

// diffType returns the type of a difference between two values, of which either may
// be absent.
func diffType(before, after, differ bool) string {
	switch {
	case !before && after:
		return client.DiffAdded
	case before && !after:
		return client.DiffDeleted
	case differ:
		return client.DiffEdited
	}
	return client.DiffNone
}

// A difference collects the differences of two structs.
type difference struct {
	fields  []*client.FieldDiff
	objects []*client.ObjectDiff
}

func (d *difference) empty() bool { return len(d.fields)+len(d.objects) == 0 }

// value adds a difference of one value; "" means that it is absent.
func (d *difference) value(name, before, after string) {
	if before != after {
		d.fields = append(d.fields, &client.FieldDiff{Type: diffType(before != "", after != "", true), Name: name, Old: before, New: after})
	}
}

// structs compares two structs of the same type field by field. Either may be the
// zero Value, if it is absent. Fields in except are skipped.
func (d *difference) structs(before, after reflect.Value, except ...string) {
	t := after
	if !t.IsValid() {
		t = before
	}
	if !t.IsValid() {
		return
	}
	for i := range t.NumField() {
		name := t.Type().Field(i).Name
		if slices.Contains(except, name) {
			continue
		}
		d.part(name, fieldOf(before, i), fieldOf(after, i))
	}
}

func fieldOf(v reflect.Value, i int) reflect.Value {
	if !v.IsValid() {
		return v
	}
	return pointee(v.Field(i).Interface())
}

// pointee returns the value that x holds or points to, or the zero Value if x is nil.
func pointee(x any) reflect.Value {
	v := reflect.ValueOf(x)
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// part compares two values of a field.
func (d *difference) part(name string, before, after reflect.Value) {
	t := after
	if !t.IsValid() {
		t = before
	}
	switch {
	case !t.IsValid():
	case t.Kind() == reflect.Struct:
		var inner difference
		inner.structs(before, after)
		d.object(name, before.IsValid(), after.IsValid(), &inner)
	case t.Kind() == reflect.Slice && pointerTo(t.Type().Elem()).Kind() == reflect.Struct:
		d.set(name, before, after)
	case t.Kind() == reflect.Map || t.Kind() == reflect.Slice:
		a, b := map[string]string{}, map[string]string{}
		flatten(a, name, before)
		flatten(b, name, after)
		for _, key := range slices.Sorted(maps.Keys(union(a, b))) {
			d.value(key, a[key], b[key])
		}
	default:
		d.value(name, textOf(before), textOf(after))
	}
}

func pointerTo(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// object adds the difference of a struct, unless it has none.
func (d *difference) object(name string, before, after bool, inner *difference) {
	if kind := diffType(before, after, !inner.empty()); kind != client.DiffNone && !inner.empty() {
		d.objects = append(d.objects, &client.ObjectDiff{Type: kind, Name: name, Fields: inner.fields, Objects: inner.objects})
	}
}

// set compares two lists of structs as sets: an element that only one of them has is
// added or deleted.
func (d *difference) set(name string, before, after reflect.Value) {
	a, b := elements(before), elements(after)
	for text, element := range b.all() {
		if !a.has(text) {
			var inner difference
			inner.structs(reflect.Value{}, element)
			d.object(name, false, true, &inner)
		}
	}
	for text, element := range a.all() {
		if !b.has(text) {
			var inner difference
			inner.structs(element, reflect.Value{})
			d.object(name, true, false, &inner)
		}
	}
}

// An elementList is a list of structs with their JSON, by which they are compared.
type elementList struct {
	texts    []string
	elements []reflect.Value
}

func elements(list reflect.Value) (out elementList) {
	if !list.IsValid() {
		return out
	}
	for i := range list.Len() {
		e := pointee(list.Index(i).Interface())
		if !e.IsValid() {
			continue
		}
		text, err := json.Marshal(e.Interface())
		if err != nil {
			panic("api: cannot encode a part of a job as JSON: " + err.Error())
		}
		out.texts, out.elements = append(out.texts, string(text)), append(out.elements, e)
	}
	return out
}

func (l elementList) has(text string) bool { return slices.Contains(l.texts, text) }

func (l elementList) all() func(func(string, reflect.Value) bool) {
	return func(yield func(string, reflect.Value) bool) {
		for i, text := range l.texts {
			if !yield(text, l.elements[i]) {
				return
			}
		}
	}
}

// flatten adds the values of a map or list to values, by path: Meta[key], args[0].
func flatten(values map[string]string, path string, v reflect.Value) {
	if v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			flatten(values, fmt.Sprintf("%s[%v]", path, key), v.MapIndex(key))
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			flatten(values, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	default:
		values[path] = fmt.Sprint(v.Interface())
	}
}

// textOf returns a scalar as text, and "" if it is absent or the zero value of a
// text.
func textOf(v reflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	if v.Kind() == reflect.Int64 {
		return strconv.FormatInt(v.Int(), 10) // also a duration, in nanoseconds
	}
	return fmt.Sprint(v.Interface())
}
