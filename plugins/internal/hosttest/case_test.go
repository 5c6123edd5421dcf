package hosttest

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// Hosts are not compared on columns that no case contains.
func TestRandomCase_FillsEveryColumn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 44))
	seen := map[string]bool{}
	for range 200 {
		record(seen, "", reflect.ValueOf(RandomCase(r)))
	}
	for name, filled := range seen {
		if !filled {
			t.Errorf("%s is empty in every case", name)
		}
	}
}

// record records for every field below a value, by its path, whether it was ever set.
func record(seen map[string]bool, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			record(seen, path, v.Elem())
			return
		}
	case reflect.Struct:
		for i := range v.NumField() {
			record(seen, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
		return
	}
	seen[path] = seen[path] || holds(v)
}

// holds reports whether a value, or any of its elements, is not zero.
func holds(v reflect.Value) bool {
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return !v.IsZero()
	}
	for i := range v.Len() {
		if holds(v.Index(i)) {
			return true
		}
	}
	return false
}
