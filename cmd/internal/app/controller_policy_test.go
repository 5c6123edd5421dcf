package app

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
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

// A policy that cannot decide is refused with its name as configured. A name that does not
// exist is reported with those that do.
func TestWatchedPolicy_RefusesPolicies(t *testing.T) {
	for use, want := range map[string]string{
		"protekt":             `unknown policy "protekt"`,
		"./none.wasm":         "./none.wasm: no such file",
		"karmada@1":           "karmada@1 decides about bindings of member clusters only",
		"protect?minRuntme=1": "policy protect?minRuntme=1: configuration: minRuntme: unknown setting",
	} {
		c := &config.Config{Kubernetes: config.Kubernetes{Policy: use}}
		_, err := newWatchedPolicy(t.Context(), c, localSource{use: use}, slog.New(slog.DiscardHandler), newMetrics(Build{}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", use, err, want)
		}
		if unknown, ok := errors.AsType[*policies.UnknownError](err); ok != (use == "protekt") || ok && !strings.Contains(unknown.Hint(), "protect") {
			t.Errorf("%s: %v", use, err)
		}
	}
}
