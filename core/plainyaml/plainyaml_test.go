package plainyaml_test

import (
	"bytes"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/plainyaml"
)

type word string

type inner struct {
	Share *float64 `yaml:"share,omitempty"`
}

type document struct {
	inner `yaml:",inline"`

	Count  uint64         `yaml:"count"`
	Level  int            `yaml:"level"`
	Kind   word           `yaml:"kind"`
	On     bool           `yaml:"on"`
	Names  []string       `yaml:"names,omitempty"`
	Config map[string]any `yaml:"config"`
	Parts  []inner        `yaml:"parts"`
}

func TestProblems_UseNoTypesOfPrograms(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"count: -1", "line 1: expected an integer of 0 or more, found the number -1"},
		{"level: high", "line 1: expected an integer, found the string high"},
		{"kind: [a]", "line 1: expected a string, found a list"},
		{"on: 2020-02-02", "line 1: expected true or false, found the date 2020-02-02"},
		{"\nnames: 5", "line 2: expected a list, found the number 5"},
		{"config: [1]", "line 1: expected fields, found a list"},
		{"parts:\n- 7", "line 2: expected fields, found the number 7"},
		{"parts: [{share: x}]", "line 1: expected a number, found the string x"},
		{"parts: [{size: 1}]", `line 1: unknown field "size": must be share`},
		{"size: 1", `line 1: unknown field "size": must be config, count, kind, level, names, on, parts, share`},
		{"a: [\nb", "line 2: did not find expected ',' or ']'"},
		{"a: *x", "unknown anchor 'x' referenced"},
	} {
		var v document
		d := yaml.NewDecoder(bytes.NewReader([]byte(c.text)))
		d.KnownFields(true)
		err := d.Decode(&v)
		if err == nil {
			t.Errorf("%s: no error", c.text)
			continue
		}
		if list := plainyaml.Problems(err, &v); len(list) != 1 || list[0].String() != c.want {
			t.Errorf("%q: %v, want %s", c.text, list, c.want)
		}
	}
}

func TestProblems_ListsAllByLine(t *testing.T) {
	var v document
	list := plainyaml.Problems(yaml.Unmarshal([]byte("count: a\nlevel: b\n"), &v), &v)
	if len(list) != 2 || list[0].Line != 1 || list[1].Line != 2 || list[0].Syntax || list[0].Unknown {
		t.Errorf("%+v", list)
	}
}
