package meter_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

// engines must execute metered modules identically, at the same cost.
var engines = []struct {
	name   string
	config func() wazero.RuntimeConfig
}{
	{"compiler", wazero.NewRuntimeConfigCompiler},
	{"interpreter", wazero.NewRuntimeConfigInterpreter},
}

const plenty = 1 << 40

// fixture reads a module of testdata.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func instrument(t testing.TB, module []byte) *meter.Module {
	t.Helper()
	m, err := meter.Instrument(module, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// instance is a running module, metered or not.
type instance struct {
	api.Module
	fuel    api.MutableGlobal // nil without metering
	ctx     context.Context
	runtime wazero.Runtime
}

// close releases resources that thousands of instances would exhaust.
func (i *instance) close() { _ = i.runtime.Close(i.ctx) }

// run instantiates a module in its own runtime.
func run(t testing.TB, config wazero.RuntimeConfig, module []byte) *instance {
	t.Helper()
	i, err := tryRun(t, config, module)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func tryRun(t testing.TB, config wazero.RuntimeConfig, module []byte) (*instance, error) {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(256))
	t.Cleanup(func() { _ = r.Close(context.WithoutCancel(ctx)) })
	m, err := r.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		_ = r.Close(ctx)
		return nil, err
	}
	i := &instance{Module: m, ctx: ctx, runtime: r}
	if g := m.ExportedGlobal(meter.FuelGlobal); g != nil {
		i.fuel = g.(api.MutableGlobal)
	}
	if m.ExportedFunction(meter.StartExport) != nil {
		if _, _, err := i.call(plenty, meter.StartExport); err != nil {
			_ = r.Close(ctx)
			return nil, err
		}
	}
	return i, nil
}

// call calls a function with the given fuel and returns the ticks it took, which is all of
// it if the fuel ran out.
func (i *instance) call(fuel int64, name string, args ...uint64) (results []uint64, ticks int64, err error) {
	f := i.ExportedFunction(name)
	if f == nil {
		return nil, 0, fmt.Errorf("no function %q", name)
	}
	if i.fuel == nil {
		results, err = f.Call(i.ctx, args...)
		return results, 0, err
	}
	i.fuel.Set(uint64(fuel))
	results, err = f.Call(i.ctx, args...)
	left := int64(i.fuel.Get())
	switch {
	case left == -1 && err != nil:
		return nil, fuel, errOutOfFuel
	case left < 0:
		return nil, 0, fmt.Errorf("fuel is %d and the call says: %w", left, err)
	}
	return results, fuel - left, err
}

var errOutOfFuel = errors.New("out of fuel")
