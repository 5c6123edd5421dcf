package mixes_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
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

// A shipped is a policy of this repository.
type shipped struct {
	name string
	make func() sdk.Policy
}

var policies = []shipped{
	{policy.DefaultName, func() sdk.Policy { return rules.New() }},
	{"aging", func() sdk.Policy { return aging.New() }},
	{"fair-share", func() sdk.Policy { return fairshare.New() }},
	{"karmada", func() sdk.Policy { return karmada.New() }},
	{"kubernetes", func() sdk.Policy { return kubernetes.New() }},
	{"least-waste", func() sdk.Policy { return leastwaste.New() }},
	{"nomad", func() sdk.Policy { return nomad.New() }},
	{"optimal", func() sdk.Policy { return optimal.New() }},
	{"protect", func() sdk.Policy { return protect.New() }},
}

// resolve returns the version of a policy that the built-in of that name has.
func resolve(spec sim.PolicySpec) (*policy.Version, error) {
	at := slices.IndexFunc(policies, func(p shipped) bool { return p.name == spec.Use })
	if at < 0 {
		return nil, fmt.Errorf("unknown policy %q", spec.Use)
	}
	grants := spec.Grants
	if spec.Use == "nomad" {
		grants = append(grants, policy.GrantKeepRedundant)
	}
	return policy.NewVersion(policy.Source{
		Name: spec.Name, Grants: grants, Module: policy.Native(policy.BuiltinDigest(spec.Use, "test"), policies[at].make),
	})
}

func TestPolicies_AreAllShippedOnes(t *testing.T) {
	entries, err := os.ReadDir("../../../policies")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, p := range policies {
		names[p.name] = true
	}
	for _, e := range entries {
		if e.IsDir() && !names[e.Name()] {
			t.Errorf("policy %s is not audited", e.Name())
		}
	}
}
