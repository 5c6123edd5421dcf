package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/generate"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// resolve returns a built-in policy.
func resolve(spec sim.PolicySpec) (*policy.Version, error) {
	return builtin.Version(spec.Name, spec.Use, spec.Config, spec.Grants...)
}

// scenarios lists the files that can be played; those that end in spec.yaml generate one.
func scenarios(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range all {
		if !strings.HasSuffix(file, "spec.yaml") {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		t.Fatal("no scenario found")
	}
	return files
}

func decode(t *testing.T, name string) *scenario.File {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := scenario.Decode(name, file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// play returns the run, and its result as JSON.
func play(t *testing.T, f *scenario.File, workers int) (*sim.Run, []byte) {
	t.Helper()
	run, err := sim.Play(t.Context(), f, sim.Options{Resolve: resolve, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range run.Faults {
		t.Error(fault)
	}
	text, err := json.Marshal(run.Result)
	if err != nil {
		t.Fatal(err)
	}
	return run, text
}

func TestScenarios_MeetTheirExpectations(t *testing.T) {
	for _, name := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			f := decode(t, name)
			if f.Expect == nil || f.Description == "" {
				t.Fatal("an example requires a description and expectations")
			}
			run, text := play(t, f, 1)
			for _, difference := range sim.CheckExpect(f, run.Result) {
				t.Error(difference)
			}
			if _, again := play(t, decode(t, name), 4); !bytes.Equal(text, again) {
				t.Errorf("played again:\n%s\nfirst:\n%s", again, text)
			}
		})
	}
}

// TestScenarios_OfOneExampleHaveOneCluster checks that the files of an example differ
// only as its page describes, so that their results are comparable.
func TestScenarios_OfOneExampleHaveOneCluster(t *testing.T) {
	for _, name := range scenarios(t) {
		main := filepath.Join(filepath.Dir(name), "scenario.yaml")
		f, m := decode(t, name), decode(t, main)
		if !reflect.DeepEqual(f.Nodes, m.Nodes) || !reflect.DeepEqual(f.Running, m.Running) {
			t.Errorf("%s and %s must have the same nodes and running allocations", name, main)
		}
	}
	for name, main := range map[string]string{
		"fragmentation/nomad.yaml":        "fragmentation/scenario.yaml",
		"priority-inversion/without.yaml": "priority-inversion/scenario.yaml",
		"protect/without.yaml":            "protect/scenario.yaml",
	} {
		f, m := decode(t, name), decode(t, main)
		if !reflect.DeepEqual(f.Jobs, m.Jobs) || !reflect.DeepEqual(f.Events, m.Events) || !reflect.DeepEqual(f.Until, m.Until) {
			t.Errorf("%s and %s must differ only in the scheduler configuration", name, main)
		}
	}
}

func TestSpec_GeneratesAValidScenario(t *testing.T) {
	spec, err := generate.Open("contended/spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := generate.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Resolve(f); err != nil {
		t.Fatal(err)
	}
}

// TestReadme_ListsEveryExample checks the table in README.md.
func TestReadme_ListsEveryExample(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range folders {
		if name := filepath.Dir(page); !strings.Contains(string(text), "| ["+name+"]("+name+") |") {
			t.Errorf("README.md has no row for %s", name)
		}
	}
}
