package sim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// resolve returns a built-in policy.
func resolve(spec sim.PolicySpec) (*policy.Version, error) {
	return builtin.Version(spec.Name, spec.Use, spec.Config, spec.Grants...)
}

// playExpected plays a scenario file and reports where its expectations do not hold.
func playExpected(t *testing.T, name string) *sim.Run {
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
	run, err := sim.Play(t.Context(), f, sim.Options{Resolve: resolve})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range sim.CheckExpect(f, run.Result) {
		t.Error(d)
	}
	return run
}

func TestContractScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("scenario/testdata/contract/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			run := playExpected(t, name)
			if t.Failed() {
				b, _ := json.MarshalIndent(run.Result, "", " ")
				t.Log(string(b))
			}
		})
	}
}
