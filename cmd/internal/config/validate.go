package config

import (
	"reflect"
	"slices"
	"strings"
)

// validate completes the configuration and appends the results of its checks to the
// problems.
//
// If a value could not be read, its key has the default, and a check that depends on
// it may report a false problem: with `server.enabled: ja`, that nothing is enabled.
// If validation stopped there, users would find one problem per run. Therefore the
// checks run again for each such key with other values, and only problems that occur
// with all of them are reported.
func (l *loader) validate(out *Loaded) {
	given := out.Config
	out.fill()
	found := out.check(l.look)
	for _, f := range fields() {
		if !l.invalid[f.key] {
			continue
		}
		for _, v := range representativeValues(f.typ) {
			c := given
			reflect.ValueOf(&c).Elem().FieldByIndex(f.index).Set(v)
			c.fill()
			also := c.check(l.look)
			found = slices.DeleteFunc(found, func(p Problem) bool { return p.Key == f.key || !slices.Contains(also, p) })
		}
	}
	for _, p := range found {
		if f, ok := find(strings.Split(p.Key, ".")); ok {
			p.Where = l.location(f)
		}
		l.problems = append(l.problems, p)
	}
	slices.SortStableFunc(l.problems, func(a, b Problem) int { return strings.Compare(a.Key, b.Key) })
}

// representativeValues returns values of a type that the checks distinguish: the zero
// value, a non-zero value, and one larger than any bound.
func representativeValues(t reflect.Type) []reflect.Value {
	list := []reflect.Value{reflect.Zero(t)}
	some := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Bool:
		some.SetBool(true)
	case reflect.String:
		some.SetString("a-value-of-32-bytes-or-a-few-more")
	case reflect.Int, reflect.Int64:
		some.SetInt(1<<31 - 1)
	case reflect.Float64:
		some.SetFloat(1)
	case reflect.Slice:
		some.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.Map:
		some.Set(reflect.MakeMap(t))
		some.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(t.Elem()))
	default:
		return list
	}
	return append(list, some)
}
