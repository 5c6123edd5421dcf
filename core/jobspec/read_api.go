package jobspec

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// apiJob reads a job in the API's own JSON, with the types of sdk/client as the
// schema. Other fields, which Nomad's tools write, are rejected if they have a value
// and ignored if they are empty.
func (r *parser) apiJob(v *value) *client.Job {
	j := &client.Job{}
	o := r.object("a job", "", v)
	if r.schedulingOnly {
		o.text("NodePool", "NodePool", set(&r.nodePool))
	}
	o.reflect(reflect.ValueOf(j).Elem())
	return j
}

// reflect reads the object into a struct.
func (o *object) reflect(to reflect.Value) {
	o.fromAPI = true
	kind := to.Type()
	for i := range kind.NumField() {
		name := kind.Field(i).Name
		if v := o.one(name, name); v != nil {
			o.into(to.Field(i), name, v)
		}
	}
	for _, f := range o.value.fields {
		if !o.known[f.name] && f.value.isEmpty() {
			o.known[f.name] = true
		}
	}
	o.done()
}

// isEmpty reports whether a value is the zero value of its kind. Nomad's tools write
// every field, including the unset ones.
func (v *value) isEmpty() bool {
	switch v.kind {
	case kindNull:
		return true
	case kindBool:
		return v.text == "false"
	case kindNumber:
		f, _ := parseNumber(v.text)
		return f == 0
	case kindText:
		return v.text == ""
	}
	return len(v.list)+len(v.fields) == 0
}

// into reads a value according to the type of its destination.
func (o *object) into(to reflect.Value, path string, v *value) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	if to.Type() == reflect.TypeFor[time.Duration]() {
		if v.kind == kindNumber { // the API uses nanoseconds
			o.int64(to, name, path, v)
			return
		}
		if d, err := parseDuration(v); err == nil && v.kind == kindText {
			to.SetInt(int64(d))
			return
		}
		o.typeError(name, path, v, "a duration in nanoseconds", `write an integer, or a string such as "30s"`)
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		p := reflect.New(to.Type().Elem())
		o.into(p.Elem(), path, v)
		to.Set(p)
	case reflect.String:
		if v.kind != kindText {
			o.typeError(name, path, v, "a string", "write one value in quotes")
			return
		}
		to.SetString(v.text)
	case reflect.Bool:
		if v.kind != kindBool {
			o.typeError(name, path, v, "true or false", "write true or false, without quotes")
			return
		}
		to.SetBool(v.text == "true")
	case reflect.Int, reflect.Int64, reflect.Uint64:
		o.int64(to, name, path, v)
	case reflect.Float64:
		f, ok := parseNumber(v.text)
		if v.kind != kindNumber || !ok {
			o.typeError(name, path, v, "a number", "write a finite number, without quotes")
			return
		}
		to.SetFloat(f)
	case reflect.Slice:
		o.slice(to, name, path, v)
	case reflect.Map:
		o.mapping(to, name, path, v)
	case reflect.Struct:
		if v.kind != kindObject {
			o.typeError(name, path, v, "a mapping", "write { }")
			return
		}
		o.object(name, o.subpath(path), v).reflect(to)
	case reflect.Interface:
		if p := v.plain(); p != nil {
			to.Set(reflect.ValueOf(p))
		}
	}
}

func (o *object) int64(to reflect.Value, name, path string, v *value) {
	n, ok := parseInteger(v.text)
	if v.kind != kindNumber || !ok {
		o.typeError(name, path, v, "an integer", "write digits, without quotes")
		return
	}
	if to.Kind() == reflect.Uint64 {
		if n < 0 {
			o.typeError(name, path, v, "a number of 0 or more", "remove the sign")
			return
		}
		to.SetUint(uint64(n))
		return
	}
	if to.Type() == reflect.TypeFor[int]() && (n < math.MinInt32 || n > math.MaxInt32) && !strings.HasSuffix(name, "MB") && name != "CPU" {
		o.typeError(name, path, v, "a number from -2147483648 to 2147483647", "check the number")
		return
	}
	to.SetInt(n)
}

func (o *object) slice(to reflect.Value, name, path string, v *value) {
	if v.kind != kindList {
		o.typeError(name, path, v, "a list", "write [ ]")
		return
	}
	for i, e := range v.list {
		at := fmt.Sprintf("%s[%d]", path, i)
		o.origins[o.subpath(at)] = origin{e.at, name}
		if e.kind == kindNull {
			o.typeError(name, at, e, "a value", "remove it")
			continue
		}
		if o.schedulingOnly && to.Type() == reflect.TypeFor[[]*client.Task]() && e.kind == kindObject && o.object(name, o.subpath(at), e).ignoreTask() {
			continue
		}
		element := reflect.New(to.Type().Elem()).Elem()
		o.into(element, at, e)
		to.Set(reflect.Append(to, element))
	}
}

func (o *object) mapping(to reflect.Value, name, path string, v *value) {
	if v.kind != kindObject {
		o.typeError(name, path, v, "a mapping", "write { }")
		return
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, f := range v.fields {
		at := keyPath(path, f.name)
		o.origins[o.subpath(at)] = origin{f.value.at, f.name}
		element := reflect.New(to.Type().Elem()).Elem()
		o.into(element, at, f.value)
		to.SetMapIndex(reflect.ValueOf(f.name), element)
	}
}
