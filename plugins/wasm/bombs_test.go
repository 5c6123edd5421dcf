package wasm_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
	"github.com/cede-scheduler/cede/plugins/wasm/wasmtest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A module of a few hundred kilobytes must not occupy gigabytes of the host's memory, or a
// processor for minutes: it is refused by a limit, or compiled within a budget.
func TestLoad_RejectsCompileBombs(t *testing.T) {
	if soak.Race {
		t.Skip("the race detector exceeds the memory of the budget")
	}
	h := compilingHost(t, compiler.Budget{CPU: time.Second})
	every := 3 // half of them use up the budget
	if soak.Full() {
		every = 1
	}
	for i, name := range slices.Sorted(maps.Keys(wasmtest.Bombs)) {
		if i%every != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			_, err := h.Load(t.Context(), wasmtest.Bombs[name](), policy.Limits{})
			fault := new(policy.Error)
			if !errors.As(err, &fault) || fault.Fault == policy.FaultHost {
				t.Errorf("want a fault of the module, got %v", err)
			}
			t.Log(err)
		})
	}
}
