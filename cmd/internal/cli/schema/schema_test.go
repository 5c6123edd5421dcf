package schema_test

import (
	"encoding/json"
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
