package wasm_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
	"github.com/cede-scheduler/cede/plugins/wasm/wasmtest"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// callHostile starts a hostile guest and returns the instance and the result of a call, which
// runs meanwhile.
func callHostile(t *testing.T, name string, limits policy.Limits) (policy.Instance, <-chan error) {
	t.Helper()
	if soak.Race {
		t.Skip("compiled code does not run under the race detector's clock")
	}
	in := start(t, load(t, host(t, wasm.Options{}), hostileGuest(t, name), limits), "")
	done := make(chan error, 1)
	go func() {
		var out sdk.Selection
		done <- in.SelectVictims(hosttest.UniformCandidates(1, 1), &out)
	}()
	return in, done
}

func wantHostileFault(t *testing.T, done <-chan error, kind policy.Fault) {
	t.Helper()
	fault := new(policy.Error)
	if err := <-done; !errors.As(err, &fault) || fault.Fault != kind {
		t.Errorf("want a fault of kind %v, got %v", kind, err)
	}
}

// A garbage collection stops all goroutines, and thus the whole server, until each of them
// can be stopped. Go cannot interrupt compiled code.
func TestCall_DoesNotDelayGarbageCollection(t *testing.T) {
	_, done := callHostile(t, "spin", policy.Limits{Fuel: policy.MaxLimits.Fuel, Time: policy.MaxLimits.Time})
	for range 3 {
		runtime.GC()
	}
	select {
	case err := <-done:
		t.Errorf("the collections waited for the end of the call: %v", err)
	default:
	}
	wantHostileFault(t, done, policy.FaultLimit)
}

func TestCall_EndsAtTimeLimit(t *testing.T) {
	_, done := callHostile(t, "spin", policy.Limits{Fuel: policy.MaxLimits.Fuel, Time: time.Microsecond})
	wantHostileFault(t, done, policy.FaultTimeout)
}

// The engine itself allows 400 MB, outside of the memory of the module.
func TestCall_BoundsEngineStack(t *testing.T) {
	in, done := callHostile(t, "recurse_endless", policy.Limits{Fuel: policy.MaxLimits.Fuel, Time: policy.MaxLimits.Time})
	wantHostileFault(t, done, policy.FaultLimit)
	if size := wasm.StackSize(in); size > 64<<20 {
		t.Errorf("the stack has %d MiB", size>>20)
	}
}

// Limits from a log that an older version wrote are bounded too.
func TestLoad_BoundsLimits(t *testing.T) {
	m := load(t, host(t, wasm.Options{Interpreter: true}), hostileGuest(t, "score_never"), policy.Limits{Fuel: 1 << 62, FuelPerRow: 1 << 62, Memory: 1 << 40, Time: time.Hour})
	if got := m.Limits(); got != policy.MaxLimits {
		t.Errorf("limits %+v, want %+v", got, policy.MaxLimits)
	}
	if fuel := m.Limits().CallFuel(1 << 30); fuel != policy.MaxCallFuel {
		t.Errorf("a call with a billion rows has %d ticks of fuel", fuel)
	}
}

// compilingHost returns a host that finds no compiled module.
func compilingHost(t *testing.T, b compiler.Budget) *wasm.Host {
	t.Helper()
	return host(t, wasm.Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Budget: b})
}

func TestLoad_CompilesInProcess(t *testing.T) {
	h := compilingHost(t, compiler.Budget{})
	for range 2 { // compiled, and found in the cache
		m := load(t, h, hostileGuest(t, "memory_mover"), policy.Limits{})
		var out sdk.Selection
		out.Reset()
		if err := start(t, m, "").SelectVictims(hosttest.UniformCandidates(1, 3), &out); err != nil || out.Len() != 1 {
			t.Fatalf("%d options, %v", out.Len(), err)
		}
	}
}

func TestLoad_EndsCompilationOverBudget(t *testing.T) {
	if soak.Race {
		t.Skip("the race detector exceeds the memory of the budget")
	}
	for name, tt := range map[string]struct {
		budget compiler.Budget
		code   []byte
	}{
		"memory": {compiler.Budget{Memory: 128 << 20}, wasmtest.Bombs["loops_of_locals"]()},
		"time":   {compiler.Budget{Time: 100 * time.Millisecond}, wasmtest.Bombs["loops_of_locals"]()},
		"output": {compiler.Budget{Output: 4 << 10}, wasmtest.Bombs["divisions"]()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compilingHost(t, tt.budget).Load(t.Context(), tt.code, policy.Limits{})
			if fault := new(policy.Error); !errors.As(err, &fault) || fault.Fault != policy.FaultLimit || !errors.Is(err, compiler.ErrBudget) {
				t.Error(err)
			}
		})
	}
}
