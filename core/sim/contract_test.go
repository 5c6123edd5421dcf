package sim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/policies/karmada"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// resolve resolves some built-in policies, like the binary.
func resolve(spec sim.PolicySpec) (*policy.Version, error) {
	make := func() sdk.Policy { return rules.New() }
	grants := spec.Grants
	if spec.Use == "nomad" {
		make = func() sdk.Policy { return nomad.New() }
		grants = append(grants, policy.GrantKeepRedundant)
	}
	if spec.Use == "kubernetes" {
		make = func() sdk.Policy { return kubernetes.New() }
	}
	if spec.Use == "karmada" {
		make = func() sdk.Policy { return karmada.New() }
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

func TestContractScenarios(t *testing.T) {
	files, err := filepath.Glob("scenario/testdata/contract/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
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
			if t.Failed() {
				b, _ := json.MarshalIndent(run.Result, "", " ")
				t.Log(string(b))
			}
		})
	}
}
