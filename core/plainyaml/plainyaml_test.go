package plainyaml_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
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

func TestSyntax_NamesLineAndRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"kind: a\nnames: [a,\nb: c":       "line 2: did not find expected ',' or ']'",
		"kind: a\n\tlevel: 1":             "line 2: found a tab in the indentation",
		"kind: a\nnames: [b, *x]":         "line 2: unknown anchor 'x' referenced; write a text that starts with * in quotes",
		"names:\n- a\nlevel 5\nkind: b\n": "line 3: could not find expected ':'",
	} {
		var v any
		err := yaml.Unmarshal([]byte(text), &v)
		if err == nil {
			t.Errorf("%q: no error", text)
		} else if got := plainyaml.Syntax(err, []byte(text)).String(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestFractions_AreThoseOfIntegers(t *testing.T) {
	for text, want := range map[string]string{
		"count: 1000.5":                    "[line 1: expected an integer of 0 or more, found the number 1000.5]",
		"level: -2.5\ncount: 0.1":          "[line 1: expected an integer, found the number -2.5 line 2: expected an integer of 0 or more, found the number 0.1]",
		"config: {a: &x 1.5}\ncount: *x":   "[line 1: expected an integer of 0 or more, found the number 1.5]",
		"count: 1e3\nlevel: 2.0\nkind: 1":  "[]",
		"share: 0.5\nparts: [{share: .5}]": "[]",
	} {
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(text), &node); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(plainyaml.Fractions(&node, reflect.TypeFor[document]())); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Aliases and merged mappings set the fields that they would set in full, once each. A mapping may be
// merged into itself.
func TestUnknownFields_FollowAliases(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"<<: &x {size: 1}", `[line 1: unknown field "size": must be config, count, kind, level, names, on, parts, share]`},
		{"parts:\n- &x {size: 1}\n- *x\n- <<: [*x, *x]", `[line 2: unknown field "size": must be share]`},
		{"&x count: 1\n<<: &y {level: 1.5, <<: *y}", "[line 2: expected an integer, found the number 1.5]"},
		{"parts:\n- &x\n  size: 1\n  <<: *x", `[line 3: unknown field "size": must be share]`},
		{"parts:\n- &x {<<: [*x, *x]}\n- {<<: [*x, *x]}", "[]"},
		{"config: &x {x: *x, level: 1.5}", "[]"},
	} {
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(c.text), &node); err != nil {
			t.Fatal(err)
		}
		into := reflect.TypeFor[document]()
		if got := fmt.Sprint(append(plainyaml.UnknownFields(&node, into), plainyaml.Fractions(&node, into)...)); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

// Names of duplicate keys are one line without escape sequences, however the keys are written.
func TestRemoveDuplicates_ReportsPrintableNames(t *testing.T) {
	for key, want := range map[string]string{
		"count": "count", "größe": "größe", `""`: `""`, `"a\nb"`: `"a\nb"`, `"\e[1m"`: `"\x1b[1m"`, strings.Repeat("x", 70): `"` + strings.Repeat("x", 60) + `"`,
	} {
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(key+": 1\n"+key+": 2\n"), &node); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(plainyaml.RemoveDuplicates(&node)); got != "[line 2: "+want+" is given twice, first on line 1; remove one of the two]" {
			t.Errorf("%s: %s", key, got)
		}
	}
}
