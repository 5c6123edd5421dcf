package app

import (
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/pool"
	"github.com/cede-scheduler/cede/core/sim"
)

// A policy is loaded again if only its grants or its treatment of faults differ.
func TestWatchedPolicy_SumCoversGrantsAndFaults(t *testing.T) {
	p := &watchedPolicy{}
	seen := map[string]string{}
	for what, one := range map[string]pool.Policy{
		"plain":    {PolicySpec: sim.PolicySpec{Use: "kubernetes"}, Version: "v1"},
		"grants":   {PolicySpec: sim.PolicySpec{Use: "kubernetes", Grants: []string{"clock"}}, Version: "v1"},
		"on fault": {PolicySpec: sim.PolicySpec{Use: "kubernetes"}, Version: "v1", OnFault: "deny"},
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
