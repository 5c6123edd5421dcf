package hosttest

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// A column that no question has is one that hosts are not compared by.
func TestRandom_HasEveryColumnThatThereIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 44))
	seen := map[string]bool{}
	for range 200 {
		note(seen, "", reflect.ValueOf(RandomCase(r)))
	}
	for name, filled := range seen {
		if !filled {
			t.Errorf("%s is empty in every question", name)
		}
	}
}

// note notes of every field below a value, by its path, whether it was ever filled.
func note(seen map[string]bool, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(seen, path, v.Elem())
			return
		}
	case reflect.Struct:
		for i := range v.NumField() {
			note(seen, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
		return
	}
	seen[path] = seen[path] || holds(v)
}

// holds is whether a value, or any element of it, is not zero.
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
