package taskconfig

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// The list of fields is that of the parsers, and each example is valid.
func TestFields_AreThoseOfParsers(t *testing.T) {
	t.Parallel()
	for driver, config := range map[string]any{"exec": Exec{}, "sim": Sim{}} {
		var want []string
		for field := range reflect.TypeOf(config).Fields() {
			want = append(want, field.Tag.Get("json"))
		}
		slices.Sort(want)
		if got := Fields(driver); !slices.Equal(got, want) {
			t.Errorf("%s: fields %v, want %v", driver, got, want)
		}
		for _, field := range want {
			var v any
			if err := json.Unmarshal([]byte(Example(driver, field)), &v); err != nil {
				t.Errorf("%s %s: %v", driver, field, err)
			}
			if err := CheckField(driver, field, v); err != nil {
				t.Errorf("%s %s: %v", driver, field, err)
			}
		}
	}
}

// A value of another type is described in the words of the file.
func TestCheckField_DescribesWrongType(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		driver, field string
		value         any
		want          string
	}{
		{"exec", "args", "60", `expected a list of strings, found string "60"`},
		{"exec", "command", []any{"x"}, "expected a string, found a list"},
		{"exec", "work_dir", 7, "expected a string, found 7"},
		{"exec", "command", "", "command is missing"},
		{"sim", "exit_code", "one", `expected an integer, found string "one"`},
		{"sim", "ignore_term", 1, "expected true or false, found 1"},
		{"sim", "run_for", true, "expected a duration such as 10s, found true"},
		{"sim", "run_for", "-1s", `"-1s" is negative`},
	} {
		if err := CheckField(test.driver, test.field, test.value); err == nil || err.Error() != test.want {
			t.Errorf("%s %s %v: %v, want %s", test.driver, test.field, test.value, err, test.want)
		}
	}
}
