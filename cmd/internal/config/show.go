package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Value is the value of a key, and its source.
type Value struct {
	Key    string
	Value  any // secrets are masked
	Source string
}

// Values lists every key, in the order of the struct; entries of maps are listed
// individually.
func (l *Loaded) Values() (list []Value) {
	for _, f := range fields() {
		v := f.value(&l.Config)
		if m := reflect.ValueOf(v); m.Kind() == reflect.Map && m.Len() > 0 {
			entries := map[string]any{}
			for k, e := range m.Seq2() {
				entries[k.String()] = e.Interface()
			}
			for _, name := range slices.Sorted(maps.Keys(entries)) {
				key := f.key + "." + name
				list = append(list, Value{key, entries[name], l.source(key)})
			}
			continue
		}
		list = append(list, Value{f.key, shown(v), l.source(f.key)})
	}
	return list
}

func shown(v any) any {
	if s, ok := v.(fmt.Stringer); ok {
		return s.String()
	}
	return v
}

func (l *Loaded) source(key string) string {
	if s, ok := l.origin[key]; ok {
		return s
	}
	if l.Dev {
		return "default of --dev"
	}
	return "default"
}

// Changes compares l with the next configuration. It returns the changed keys that a
// running process can apply, and those that require a restart.
func (l *Loaded) Changes(next *Loaded) (reloadable, refused []string) {
	for _, f := range fields() {
		if reflect.DeepEqual(f.value(&l.Config), f.value(&next.Config)) {
			continue
		}
		if f.reload {
			reloadable = append(reloadable, f.key)
		} else {
			refused = append(refused, f.key)
		}
	}
	return reloadable, refused
}
