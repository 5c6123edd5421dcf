package cli

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// words returns the set of words of a help page.
func words(t *testing.T, topic string) map[string]bool {
	t.Helper()
	text, err := topicFiles.ReadFile("topics/" + topic + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]bool{}
	for _, w := range regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`).FindAllString(string(text), -1) {
		list[w] = true
	}
	return list
}

// fieldsBelow lists the fields of a format, including nested ones.
func fieldsBelow(t reflect.Type, list []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return fieldsBelow(t.Elem(), list)
	case reflect.Map:
		return fieldsBelow(t.Elem(), list)
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && name != "-" {
				list = append(list, name)
			}
			if f.Tag.Get("json") != "-" {
				list = fieldsBelow(f.Type, list)
			}
		}
	}
	return list
}

func tellsOf(t *testing.T, topic string, fields []string) {
	t.Helper()
	known := words(t, topic)
	slices.Sort(fields)
	for _, name := range slices.Compact(fields) {
		if !known[name] && !known[snake(name)] {
			t.Errorf("`cede help %s` does not name %s", topic, name)
		}
	}
}

// snake returns the name of a field in HCL.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// The help page lists every field of a scenario and of a binding.
func TestTopics_DocumentEveryFieldOfAScenario(t *testing.T) {
	tellsOf(t, "scenario", fieldsBelow(reflect.TypeFor[scenario.File](), nil))
	bindings := append(fieldsBelow(reflect.TypeFor[scenario.Binding](), nil), fieldsBelow(reflect.TypeFor[scenario.FeatureGates](), nil)...)
	tellsOf(t, "bindings", append(bindings, "template"))
}

// The help page lists every field of a job. The error for an unknown field lists them
// all.
func TestTopics_DocumentEveryFieldOfAJob(t *testing.T) {
	const inYAML = `
qqqqqq: 1
toleration: {qqqqqq: 1}
constraints: [{qqqqqq: 1}]
affinities: [{qqqqqq: 1}]
spread: [{qqqqqq: 1}]
groups:
  - qqqqqq: 1
    tolerations: [{qqqqqq: 1}]
    colocate: [{qqqqqq: 1}]
    devices: [{qqqqqq: 1}]
    tasks: [{qqqqqq: 1}]
`
	const inHCL = `
job "a" {
  qqqqqq = 1
  toleration { qqqqqq = 1 }
  constraint { qqqqqq = 1 }
  affinity { qqqqqq = 1 }
  spread { qqqqqq = 1 }
  group "g" {
    qqqqqq = 1
    toleration { qqqqqq = 1 }
    colocate { qqqqqq = 1 }
    network { qqqqqq = 1 }
    ephemeral_disk { qqqqqq = 1 }
    migrate { qqqqqq = 1 }
    task "t" {
      qqqqqq = 1
      resources {
        device "d" { qqqqqq = 1 }
      }
    }
  }
}
`
	for file, text := range map[string]string{"a.yaml": inYAML, "a.hcl": inHCL} {
		_, err := jobspec.Load(file, []byte(text), jobspec.Options{})
		if err == nil {
			t.Fatalf("%s: qqqqqq is accepted", file)
		}
		lists := regexp.MustCompile(`unknown field "qqqqqq" in [^;]*; valid fields: (.*)`).FindAllStringSubmatch(err.Error(), -1)
		if want := strings.Count(text, "qqqqqq"); len(lists) != want {
			t.Fatalf("%s: %d of %d fields are refused: %v", file, len(lists), want, err)
		}
		var fields []string
		for _, l := range lists {
			fields = append(fields, strings.Split(l[1], ", ")...)
		}
		tellsOf(t, "jobs", fields)
	}
}
