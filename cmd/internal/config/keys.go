package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/suggest"
)

// field is a configuration key, and the location of its value in a Config.
type field struct {
	key    string // with dots, as users write it
	path   []string
	index  []int
	typ    reflect.Type
	secret bool
	reload bool
}

// fields lists the keys, in the order of the struct.
func fields() []field { return walk(reflect.TypeFor[Config](), nil, nil) }

func walk(t reflect.Type, path []string, index []int) (list []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("koanf")
		if name == "-" {
			continue
		}
		p, x := append(slices.Clone(path), name), append(slices.Clone(index), i)
		if f.Type.Kind() == reflect.Struct {
			list = append(list, walk(f.Type, p, x)...)
			continue
		}
		list = append(list, field{
			key: strings.Join(p, "."), path: p, index: x, typ: f.Type,
			secret: f.Tag.Get("secret") != "", reload: f.Tag.Get("reload") != "",
		})
	}
	return list
}

// value returns the value of the field in c.
func (f *field) value(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByIndex(f.index).Interface()
}

// find returns the field with this path, or the map field of which path is an entry.
func find(path []string) (f field, ok bool) {
	for _, f := range fields() {
		if slices.Equal(f.path, path) || f.typ.Kind() == reflect.Map && len(path) == len(f.path)+1 && slices.Equal(f.path, path[:len(f.path)]) {
			return f, true
		}
	}
	return field{}, false
}

// isSection reports whether the path is a prefix of keys.
func isSection(path []string) bool {
	return slices.ContainsFunc(fields(), func(f field) bool { return len(f.path) > len(path) && slices.Equal(f.path[:len(path)], path) })
}

// suggestKey returns the known key closest to an unknown one: first among its siblings,
// then the same name at other paths. It returns "" if none is close.
func suggestKey(path []string) string {
	section, last := path[:len(path)-1], path[len(path)-1]
	if near := suggest.Nearest(last, children(section)); near != "" {
		return strings.Join(append(slices.Clone(section), near), ".")
	}
	for _, f := range fields() {
		if f.path[len(f.path)-1] == last {
			return f.key
		}
	}
	if near := correctSections(path); near != nil {
		return strings.Join(near, ".")
	}
	return ""
}

// correctSections replaces each name of a path that does not exist by a similar one. It
// returns nil if that gives no key.
func correctSections(path []string) (near []string) {
	for i, name := range path {
		names := children(near)
		if len(names) == 0 { // an entry of a map
			near = append(near, path[i:]...)
			break
		}
		near = append(near, suggest.Nearest(name, names))
	}
	if _, ok := find(near); !ok {
		return nil
	}
	return near
}

// children returns the names directly below a section.
func children(path []string) (names []string) {
	for _, f := range fields() {
		if len(f.path) > len(path) && slices.Equal(f.path[:len(path)], path) && !slices.Contains(names, f.path[len(path)]) {
			names = append(names, f.path[len(path)])
		}
	}
	return names
}
