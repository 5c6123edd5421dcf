package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/cmd/internal/cli/schema"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/rules"
)

const root = "../../../.."

// compile returns the validator of a schema.
func compile(t *testing.T, name string) *validator.Schema {
	t.Helper()
	text, err := schema.Text(name)
	if err != nil {
		t.Fatal(err)
	}
	document, err := validator.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// plain returns a YAML document in the types of encoding/json.
func plain(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	v, err = validator.UnmarshalJSON(strings.NewReader(string(encoded)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var schemaLine = regexp.MustCompile(`^# yaml-language-server: \$schema=(.*)\n`)

// withoutSchema lists YAML files of the examples that are not read as one of the kinds:
// descriptions of generated scenarios, files of Prometheus, recordings of others and bindings.
var withoutSchema = regexp.MustCompile(`(^|/)((\w+-)?spec\.yaml|prometheus/\w+\.yaml|traces/\w+/\w+\.yaml|member/bindings/\w+\.yaml)$`)

func TestExamples_MatchTheirSchemas(t *testing.T) {
	compiled := map[string]*validator.Schema{}
	for _, name := range schema.Names() {
		compiled[name] = compile(t, name)
	}
	checked := 0
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || withoutSchema.MatchString(filepath.ToSlash(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		line := schemaLine.FindSubmatch(text)
		if line == nil {
			t.Errorf("%s does not start with # yaml-language-server: $schema=PATH", path)
			return nil
		}
		file := filepath.Join(filepath.Dir(path), string(line[1]))
		if want, err := filepath.Rel(filepath.Join(root, "docs/reference/schemas"), file); err != nil || strings.Contains(want, "/") {
			t.Errorf("%s names %s, which is not in docs/reference/schemas", path, line[1])
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		s := compiled[strings.TrimSuffix(filepath.Base(file), ".json")]
		if s == nil {
			t.Errorf("%s names %s, which is not a schema of cede", path, line[1])
			return nil
		}
		if err := s.Validate(plain(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		checked++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 25 {
		t.Errorf("checked %d files: the examples lost their scenarios, or the walk does not find them", checked)
	}
}

// readers are the readers of files by the name of their schema. They return an error if a
// file is invalid.
var readers = map[string]func([]byte) error{
	"scenario": func(text []byte) error {
		_, err := scenario.Decode("x.json", strings.NewReader(string(text)))
		return err
	},
	"job": func(text []byte) error {
		f, err := jobspec.Load("x.json", text, jobspec.Options{})
		if err == nil {
			_, err = f.Model()
		}
		return err
	},
	"policy": func(text []byte) error {
		_, err := bundle.ParseManifest("x.json", text)
		if err == nil {
			_, err = rules.ParseManifest("x.json", "gentle", text)
		}
		return err
	},
}

const job = `{
  "id": "web", "type": "service", "priority": 50, "datacenters": ["dc1"], "meta": {"team": "shop"}, "preemptible": true,
  "toleration": {"minPreemptorPriority": 80, "minRuntime": "10m"},
  "constraints": [{"attribute": "node.class", "operator": "in", "value": ["a", "b"]}],
  "affinities": [{"attribute": "node.class", "operator": "=", "value": "a", "weight": 30}],
  "spread": [{"attribute": "node.datacenter", "weight": 50, "targets": {"dc1": 60, "dc2": 40}}],
  "groups": [{
    "name": "main", "count": 2, "minCount": 1, "resources": {"cpu": 500, "memory": "1Gi"}, "ports": [8080], "labels": {"app": "web"},
    "devices": [{"id": "gpu", "count": 1, "constraints": [{"attribute": "device.memory", "operator": ">=", "value": 8}]}],
    "colocate": [{"labels": {"app": "cache"}, "topologyKey": "node.datacenter"}],
    "tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}],
    "disconnect": {"lostAfter": "1h", "replace": true}, "maxParallelEvictions": 1, "killTimeout": "10s", "annotations": {"value": 2.5},
    "tasks": [{"name": "t", "driver": "exec", "config": {"command": "/bin/true"}, "env": {"A": "1"}, "killSignal": "SIGTERM", "resources": {"cpu": 100, "memory": 64}}]
  }]
}`

const manifest = `{
  "version": 1, "name": "gentle", "description": "x", "rules": {"eligible": "victim.age > duration('1h')", "order": ["victim.priority", "1"], "delta": 3},
  "limits": {"fuel": 1000, "memory": "16MiB", "time": "2s"}
}`

// samples are valid files with many fields.
func samples(t *testing.T) map[string][]any {
	t.Helper()
	list := map[string][]any{"job": {plain(t, []byte(job))}, "policy": {plain(t, []byte(manifest))}}
	files, err := filepath.Glob(filepath.Join(root, "examples/*/scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list["scenario"] = append(list["scenario"], plain(t, text))
	}
	return list
}

// TestSchemas_RefuseDamage damages every field of valid files. The schema must refuse an
// unknown field and a list in the place of a scalar, and whatever it refuses the reader of
// the files must refuse as well.
func TestSchemas_RefuseDamage(t *testing.T) {
	for name, documents := range samples(t) {
		s, read := compile(t, name), readers[name]
		damaged := 0
		for _, document := range documents {
			if err := s.Validate(document); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := read(encode(t, document)); err != nil {
				t.Fatalf("%s: the sample is invalid: %v", name, err)
			}
			damage(document, func(path string, free bool) {
				err := s.Validate(document)
				invalid := read(encode(t, document))
				switch {
				case err != nil && invalid == nil:
					t.Errorf("%s: the schema refuses a valid file, damaged at %s: %v", name, path, err)
				case err == nil && !free:
					t.Errorf("%s: the schema accepts damage at %s", name, path)
				}
				damaged++
			})
		}
		if damaged < 10 {
			t.Errorf("%s: %d mutants", name, damaged)
		}
	}
}

// freeFields hold mappings or values that are not described.
var freeFields = []string{"config", "settings", "meta", "env", "labels", "attributes", "resources", "capacity", "reserved", "annotations", "targets", "clusters"}

// damage calls try with each mutant of a document, which it restores afterwards. free
// reports whether the place accepts other keys or values.
func damage(document any, try func(path string, free bool)) {
	var walk func(v any, path string, free bool)
	walk = func(v any, path string, free bool) {
		switch v := v.(type) {
		case map[string]any:
			v["noSuchField"] = json.Number("1")
			try(path+".noSuchField", free)
			delete(v, "noSuchField")
			for _, key := range keys(v) {
				below := free || slices.Contains(freeFields, key)
				walk(v[key], path+"."+key, below)
				old := v[key]
				v[key] = replacement(old)
				try(path+"."+key, free || below)
				v[key] = old
			}
		case []any:
			for i := range v {
				walk(v[i], path+"[]", free)
			}
		}
	}
	walk(document, "", false)
}

// replacement returns a value of another kind.
func replacement(v any) any {
	switch v.(type) {
	case map[string]any:
		return "text"
	case []any:
		return map[string]any{"noSuchField": "text"}
	}
	return []any{[]any{}}
}

func keys(m map[string]any) (list []string) {
	for key := range m {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// simple is a scenario in which few fields depend on others.
const simple = `{
  "version": 1, "name": "x", "description": "d", "until": "1h", "scheduler": {"algorithm": "spread", "policy": "default"},
  "namespaces": [{"name": "team"}], "priorityClasses": [{"name": "high", "value": 90, "preemptionPolicy": "Never"}],
  "nodes": [{"id": "n", "count": 2, "capacity": {"cpu": 1000, "memory": "1Gi"}, "attributes": {"zone": "a"}, "taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}],
    "devices": [{"id": "nvidia/gpu/a100", "count": 2}]}],
  "jobs": [{"id": "j", "type": "batch", "priority": 5, "preemptible": true, "toleration": {"minRuntime": "1m"}, "disruptionMode": "single",
    "groups": [{"name": "g", "count": 2, "resources": {"cpu": 10}, "duration": "1m", "labels": {"app": "x"}, "devices": [{"id": "gpu", "count": 1}],
      "constraints": [{"attribute": "zone", "operator": "=", "value": "a"}], "affinities": [{"attribute": "zone", "operator": "=", "value": "a", "weight": 10}],
      "spread": [{"attribute": "zone", "weight": 10}], "tolerations": [{"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]}]}],
  "budgets": [{"name": "b", "labels": {"app": "x"}, "maxUnavailable": 1, "enforcement": "strict"}]
}`

// crossField matches changes that are valid or not by other fields, or by the inner form of a
// text. Schemas leave them to the readers.
var crossField = map[string]*regexp.Regexp{
	"job":      regexp.MustCompile(`(constraints|affinities)\[\]\.value|groups\[\]\.count = 0|\.tasks( |\[\]\.config)|tolerations\[\]\.key`),
	"policy":   regexp.MustCompile(`^\.rules( removed| = map)`),
	"scenario": regexp.MustCompile(`(constraints|affinities)\[\]\.value|tolerations\[\]\.key|budgets\[\]\.maxUnavailable( removed| = <nil>)|devices\[\]\.id = no`),
}

// TestSchemas_AgreeOnSingleFields changes one field of a valid file in many ways. The schema
// and the reader of the files must agree on the result.
func TestSchemas_AgreeOnSingleFields(t *testing.T) {
	list := samples(t)
	list["scenario"] = []any{plain(t, []byte(simple))}
	list["job"] = append(list["job"], map[string]any{"job": plain(t, []byte(job))})
	for name, documents := range list {
		s, read, count := compile(t, name), readers[name], 0
		for _, document := range documents {
			if err := errors.Join(s.Validate(document), read(encode(t, document))); err != nil {
				t.Fatalf("%s: the sample is invalid: %v", name, err)
			}
			faults(document, func(path string) {
				bySchema, byReader := s.Validate(document), read(encode(t, document))
				switch {
				case bySchema != nil && byReader == nil:
					t.Errorf("%s%s: the schema refuses a valid file: %v", name, path, bySchema)
				case bySchema == nil && byReader != nil && !crossField[name].MatchString(path):
					t.Errorf("%s%s: the schema accepts it, the reader returns %v", name, path, byReader)
				}
				count++
			})
		}
		if count < 30 {
			t.Errorf("%s: %d changes", name, count)
		}
	}
}

// TestSchemas_AcceptWhatReadersAccept changes one field of each example.
func TestSchemas_AcceptWhatReadersAccept(t *testing.T) {
	s := compile(t, "scenario")
	for _, document := range samples(t)["scenario"] {
		faults(document, func(path string) {
			if err := s.Validate(document); err != nil && readers["scenario"](encode(t, document)) == nil {
				t.Errorf("scenario%s: the schema refuses a valid file: %v", path, err)
			}
		})
	}
}

// faults calls try with a document in which one field at a time is removed or replaced, and
// restores it afterwards.
func faults(document any, try func(path string)) {
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range keys(v) {
				at, old := path+"."+key, v[key]
				walk(old, at)
				delete(v, key)
				try(at + " removed")
				for _, fault := range faultsOf(old) {
					v[key] = fault
					try(fmt.Sprintf("%s = %v", at, fault))
				}
				v[key] = old
			}
		case []any:
			for i := range v {
				walk(v[i], path+"[]")
			}
		}
	}
	walk(document, "")
}

// faultsOf returns values in the place of another.
func faultsOf(v any) []any {
	switch v.(type) {
	case []any:
		return []any{nil, []any{}}
	case map[string]any:
		return []any{nil, map[string]any{}}
	case string:
		return []any{nil, "", "no-such-value"}
	case bool:
		return []any{nil, "true"}
	}
	return []any{nil, json.Number("0"), json.Number("-1")}
}
