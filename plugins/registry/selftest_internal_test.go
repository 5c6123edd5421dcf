package registry

import (
	"reflect"
	"testing"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Policies index every column that they request, so the self-test must fill all of them.
func TestSelfTestCases_FillEveryColumn(t *testing.T) {
	q := selfTestCases(sdk.Info{})[0]
	var check func(path string, v reflect.Value)
	check = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				t.Errorf("%s is nil", path)
				return
			}
			check(path, v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				check(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice, reflect.Map:
			if v.Len() == 0 {
				t.Errorf("%s is empty", path)
			}
		case reflect.Array:
			for i := range v.Len() {
				check(path, v.Index(i))
			}
		}
	}
	check("Candidates", reflect.ValueOf(q.candidates))
	check("Options", reflect.ValueOf(q.options))
}
