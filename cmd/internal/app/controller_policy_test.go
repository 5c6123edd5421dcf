package app

import (
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/pool"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
)

// A policy is loaded again if only its grants, its treatment of faults or its limits differ.
func TestWatchedPolicy_SumCoversGrantsFaultsAndLimits(t *testing.T) {
	p := &watchedPolicy{}
	seen := map[string]string{}
	for what, one := range map[string]pool.Policy{
		"plain":    {PolicySpec: sim.PolicySpec{Use: "kubernetes"}, Version: "v1"},
		"grants":   {PolicySpec: sim.PolicySpec{Use: "kubernetes", Grants: []string{"clock"}}, Version: "v1"},
		"on fault": {PolicySpec: sim.PolicySpec{Use: "kubernetes"}, Version: "v1", OnFault: "deny"},
		"limits":   {PolicySpec: sim.PolicySpec{Use: "kubernetes"}, Version: "v1", Limits: policy.Limits{Fuel: 1}},
	} {
		sum, err := p.sum(&one)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[string(sum[:])]; ok {
			t.Errorf("%s and %s have the same checksum", what, other)
		}
		seen[string(sum[:])] = what
	}
}
