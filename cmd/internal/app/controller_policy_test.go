package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/cmd/internal/pool"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/plugins/wasm/wasmtest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
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

// Modules are compiled into a directory of this process, within the budget of a server, and
// nothing remains. With full counts, a module that exceeds the budget is loaded too.
func TestWatchedPolicy_CompilesWithinBudget(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	load := func(use string) (*watchedPolicy, error) {
		c := &config.Config{Kubernetes: config.Kubernetes{Policy: use}}
		return newWatchedPolicy(t.Context(), c, localSource{use: use}, slog.New(slog.DiscardHandler), newMetrics(Build{}))
	}
	p, err := load("../../../sdk/abi/testdata/guests/decay-c.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if code, err := filepath.Glob(tmp + "/cede-compiled-*/*"); err != nil || len(code) == 0 {
		t.Errorf("no compiled module in %s: %v", tmp, err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if soak.Full() { // it takes the whole budget
		bomb := filepath.Join(t.TempDir(), "bomb.wasm")
		if err := os.WriteFile(bomb, wasmtest.Bombs["indirect_calls"](), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(bomb); err == nil || !strings.Contains(err.Error(), "compilation exceeds its budget") {
			t.Errorf("bomb: %v", err)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v, %v remains", err, left)
	}
}
