package meter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func skipUnderRace(t *testing.T) {
	t.Helper()
	if soak.Race {
		t.Skip("no goroutines here, and minutes under the race detector")
	}
}

// verdict is the result of a call: values, or the first line of the error.
type verdict struct {
	results []uint64
	failure string
	ticks   int64
}

func (v verdict) String() string { return fmt.Sprintf("%v %q %d ticks", v.results, v.failure, v.ticks) }

// same reports whether two results are equal, ignoring ticks.
func (v verdict) same(w verdict) bool {
	return v.failure == w.failure && slices.Equal(v.results, w.results)
}

// tooDeep reports whether a call overflowed the stack, which has another size on each
// engine.
func (v verdict) tooDeep() bool { return strings.Contains(v.failure, "stack overflow") }

// callAll calls every exported function in the order of names, and stops after the first
// that runs out of fuel.
func callAll(i *instance, fuel int64, limit int) (all []verdict) {
	names := make([]string, 0)
	for name := range i.ExportedFunctionDefinitions() {
		if name != meter.StartExport {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(limit, len(names))] {
		args := make([]uint64, size(i.ExportedFunction(name).Definition().ParamTypes()))
		for n := range args {
			args[n] = uint64(n * 3)
		}
		results, ticks, err := i.call(fuel, name, args...)
		v := verdict{results: results, ticks: ticks}
		if err != nil {
			v.failure, _, _ = strings.Cut(err.Error(), "\n")
		}
		all = append(all, v)
		if errors.Is(err, errOutOfFuel) || v.tooDeep() {
			return all
		}
	}
	return all
}

// size returns the number of words of values of the given types.
func size(types []api.ValueType) int {
	n := len(types)
	for _, t := range types {
		if t == 0x7b {
			n++
		}
	}
	return n
}

// checkBehaviour checks the guarantee of metering: a metered module behaves as without
// metering, and takes the same ticks on every engine.
func checkBehaviour(tb testing.TB, module, metered []byte, fuel int64) (finished int) {
	tb.Helper()
	var on [2][]verdict
	for n, e := range engines {
		i, err := tryRun(tb, e.config(), metered)
		if err != nil {
			continue // the start function traps, or a segment does not fit
		}
		on[n] = callAll(i, fuel, 100)
		i.close()
	}
	for n := range min(len(on[0]), len(on[1])) {
		a, b := on[0][n], on[1][n]
		if a.tooDeep() || b.tooDeep() {
			return finished
		}
		if !a.same(b) || a.ticks != b.ticks {
			tb.Errorf("call %d: %v by the compiler, %v by the interpreter\n%x", n, a, b, module)
			return finished
		}
		if a.failure != errOutOfFuel.Error() {
			finished++
		}
	}
	if finished == 0 {
		return 0
	}
	i, err := tryRun(tb, wazero.NewRuntimeConfigInterpreter(), module)
	if err != nil {
		tb.Errorf("runs only metered: %v\n%x", err, module)
		return finished
	}
	defer i.close()
	for n, plain := range callAll(i, 0, finished) {
		if !plain.same(on[1][n]) && !plain.tooDeep() {
			tb.Errorf("call %d: %v unmetered, %v metered\n%x", n, plain, on[1][n], module)
		}
	}
	return finished
}

func TestInstrument_KeepsBehaviourOfRandomModules(t *testing.T) {
	t.Parallel()
	count, finished, calls := soak.Count(150, 30_000), 0, 0
	for seed := range count {
		g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
		module := g.module()
		if err := accepts(t, module); err != nil {
			t.Fatalf("seed %d: the generator is wrong: %v", seed, err)
		}
		m := checkValidity(t, module)
		if m == nil {
			t.Fatalf("seed %d: refused", seed)
		}
		finished += checkBehaviour(t, module, m.Code, 100_000)
		calls += len(g.functions)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d modules, %d of %d functions finished", count, finished, calls)
}

// A call takes at least as many ticks as it executes instructions. They are counted by the
// same module, from the same seed.
func TestInstrument_ChargesEveryInstruction(t *testing.T) {
	t.Parallel()
	var ran, charged int64
	for seed := range soak.Count(150, 30_000) {
		g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
		m := instrument(t, g.module())
		g = &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 1)), counts: true}
		counting := run(t, wazero.NewRuntimeConfigInterpreter(), g.module())
		metered := run(t, wazero.NewRuntimeConfigInterpreter(), m.Code)
		for i := range g.functions {
			name := fmt.Sprintf("f%d", i)
			args := make([]uint64, len(g.functions[i].params))
			for n := range args {
				args[n] = uint64(n + 1)
			}
			_, ticks, err := metered.call(20_000, name, args...)
			if errors.Is(err, errOutOfFuel) {
				break
			}
			before := counting.ExportedGlobal("count").Get()
			if _, _, failed := counting.call(0, name, args...); (err == nil) != (failed == nil) {
				t.Fatalf("seed %d, %s: %v metered, %v counting", seed, name, err, failed)
			}
			if err != nil {
				continue // the last charge is not in the global
			}
			count := int64(counting.ExportedGlobal("count").Get() - before)
			if ticks < count {
				t.Fatalf("seed %d, %s: %d ticks for %d instructions", seed, name, ticks, count)
			}
			ran, charged = ran+count, charged+ticks
		}
		counting.close()
		metered.close()
	}
	t.Logf("%d instructions ran, %d ticks were charged", ran, charged)
}

// The total charge follows the rules, however the fuel is stored.
func TestInstrument_ChargesRandomModulesByTheRules(t *testing.T) {
	t.Parallel()
	compared := 0
	for seed := range soak.Count(250, 50_000) {
		g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 3))}
		module := g.module()
		plain, err := meter.InstrumentPlainly(module)
		if err != nil {
			t.Fatal(err)
		}
		metered := run(t, wazero.NewRuntimeConfigInterpreter(), instrument(t, module).Code)
		plainly := run(t, wazero.NewRuntimeConfigInterpreter(), plain)
		for i := range g.functions {
			name, args := fmt.Sprintf("f%d", i), make([]uint64, len(g.functions[i].params))
			results, ticks, err := metered.call(50_000, name, args...)
			if errors.Is(err, errOutOfFuel) {
				break
			}
			want, wantTicks, wantErr := plainly.call(50_000, name, args...)
			if err == nil && (ticks != wantTicks || !slices.Equal(results, want)) || (err == nil) != (wantErr == nil) {
				t.Fatalf("seed %d, %s: %v, %d ticks, %v; want %v, %d ticks, %v", seed, name, results, ticks, err, want, wantTicks, wantErr)
			}
			compared++
		}
		plainly.close()
		metered.close()
	}
	t.Logf("%d calls", compared)
}
