package sim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/policies/aging"
	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	"github.com/cede-scheduler/cede/policies/karmada"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// builtins are the built-in policies by name.
var builtins = map[string]func() sdk.Policy{
	policy.DefaultName: func() sdk.Policy { return rules.New() },
	"aging":            func() sdk.Policy { return aging.New() },
	"fair-share":       func() sdk.Policy { return fairshare.New() },
	"karmada":          func() sdk.Policy { return karmada.New() },
	"kubernetes":       func() sdk.Policy { return kubernetes.New() },
	"least-waste":      func() sdk.Policy { return leastwaste.New() },
	"nomad":            func() sdk.Policy { return nomad.New() },
	"optimal":          func() sdk.Policy { return optimal.New() },
	"protect":          func() sdk.Policy { return protect.New() },
}

// resolve resolves some built-in policies, like the binary.
func resolve(spec sim.PolicySpec) (*policy.Version, error) {
	make, known := builtins[spec.Use]
	if !known {
		make = builtins[policy.DefaultName]
	}
	grants := spec.Grants
	if spec.Use == "nomad" {
		grants = append(grants, policy.GrantKeepRedundant)
	}
	config, err := json.Marshal(spec.Config)
	if err != nil {
		return nil, err
	}
	return policy.NewVersion(policy.Source{
		Name: spec.Name, Config: config, Grants: grants,
		Module: policy.Native(policy.BuiltinDigest(spec.Use, "test"), make),
	})
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
