package meter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

const minusOne = math.MaxUint32 // of an i32

// The expected ticks were counted manually by the rules in doc.go.
func TestInstrument_ChargesByTheRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		module, function string
		args, results    []uint64
		ticks            int64
	}{
		{"control", "empty", nil, nil, 1},
		{"control", "straight", []uint64{5}, []uint64{15}, 1 + 3},
		{"control", "locals", nil, nil, 1 + 3},
		{"control", "count", []uint64{1}, []uint64{1}, 1 + 1 + 1 + 8},
		{"control", "count", []uint64{10}, []uint64{10}, 1 + 1 + 1 + 10*8},
		{"control", "arms", []uint64{1}, []uint64{1}, 1 + 2 + 1},
		{"control", "arms", []uint64{0}, []uint64{2}, 1 + 2 + 3},
		{"control", "guard", []uint64{1}, []uint64{7}, 1 + 2 + 2 + 1},
		{"control", "guard", []uint64{0}, []uint64{8}, 1 + 2 + 2 + 1},
		{"control", "early", []uint64{1}, []uint64{1}, 1 + 3 + 2},
		{"control", "early", []uint64{0}, []uint64{2}, 1 + 3 + 1},
		{"control", "table", []uint64{0}, []uint64{10}, 1 + 2 + 2},
		{"control", "table", []uint64{1}, []uint64{20}, 1 + 2 + 2},
		{"control", "table", []uint64{9}, []uint64{30}, 1 + 2 + 1},
		{"control", "dead", nil, []uint64{1}, 1 + 2},
		{"control", "calls", []uint64{1}, []uint64{1}, 1 + 6 + 2*1},
		{"control", "calls", []uint64{0}, []uint64{1}, 1 + 6 + 3*1},
		{"control", "multi", []uint64{4}, []uint64{4, 5}, 1 + 2 + 3},
		{"control", "nested", []uint64{1}, []uint64{2}, 1 + 3},
		{"control", "nested", []uint64{0}, []uint64{2}, 1 + 3 + 2},
		{"control", "eight", []uint64{0}, nil, 1 + 2 + 8},
		{"control", "eight", []uint64{1}, nil, 1 + 2 + 8},
		{"control", "nine", []uint64{0}, nil, 1 + 2 + 2},
		{"control", "nine", []uint64{1}, nil, 1 + 2 + 9},
		{"control", "meet", []uint64{0}, []uint64{1}, 1 + 1 + 4 + 2*1},
		{"control", "meet", []uint64{1}, []uint64{1}, 1 + 1 + 4 + 1},
		{"bulk", "fill", []uint64{0, 7}, nil, 1 + 4},
		{"bulk", "fill", []uint64{0, 1003}, nil, 1 + 4 + 125},
		{"bulk", "copy", []uint64{0, 800, 800}, nil, 1 + 4 + 100},
		{"bulk", "init", []uint64{0, 0, 16}, nil, 1 + 4 + 2},
		{"bulk", "drop", nil, nil, 1 + 1},
		{"bulk", "grow", []uint64{1}, []uint64{2}, 1 + 2 + 8192},
		{"bulk", "grow", []uint64{3}, []uint64{minusOne}, 1 + 2 + 3*8192},
		{"bulk", "grow", []uint64{65537}, []uint64{minusOne}, 1 + 2},
		{"bulk", "grow", []uint64{minusOne}, []uint64{minusOne}, 1 + 2},
		{"bulk", "table_fill", []uint64{0, 8}, nil, 1 + 4 + 8},
		{"bulk", "table_copy", []uint64{0, 4, 4}, nil, 1 + 4 + 4},
		{"bulk", "table_init", []uint64{0, 0, 3}, nil, 1 + 4 + 3},
		{"bulk", "table_grow", []uint64{5}, []uint64{8}, 1 + 3 + 5},
		{"bulk", "table_grow", []uint64{13}, []uint64{minusOne}, 1 + 3 + 13},
		{"bulk", "table_size", nil, []uint64{4}, 1 + 1},
	} {
		for _, e := range engines {
			t.Run(c.function+"/"+e.name, func(t *testing.T) {
				i := run(t, e.config(), instrument(t, fixture(t, c.module)).Code)
				results, ticks, err := i.call(plenty, c.function, c.args...)
				if err != nil || !slices.Equal(results, c.results) || ticks != c.ticks {
					t.Errorf("%s%v = %v, %d ticks, %v; want %v, %d ticks", c.function, c.args, results, ticks, err, c.results, c.ticks)
				}
				if _, ticks, err := i.call(c.ticks-1, c.function, c.args...); !errors.Is(err, errOutOfFuel) {
					t.Errorf("one tick less: %d ticks, %v", ticks, err)
				}
			})
		}
	}
}

func TestInstrument_StopsEndlessLoops(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"spin", "spin_if", "recurse"} {
		for _, e := range engines {
			t.Run(name+"/"+e.name, func(t *testing.T) {
				i := run(t, e.config(), instrument(t, fixture(t, "control")).Code)
				for range 3 { // the instance remains usable
					if _, ticks, err := i.call(1000, name); !errors.Is(err, errOutOfFuel) {
						t.Errorf("after %d ticks: %v", ticks, err)
					}
				}
				if _, _, err := i.call(10, "empty"); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestInstrument_StopsEndlessGuests(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	i := runGuest(t, wazero.NewRuntimeConfigCompiler(), instrument(t, buildGo(t)).Code)
	if _, _, err := i.call(1e6, "spin"); !errors.Is(err, errOutOfFuel) {
		t.Error(err)
	}
}

// Any value of the global at the start of a call that a host can reasonably write is a valid
// amount of fuel.
func TestInstrument_FuelDoesNotWrapAround(t *testing.T) {
	t.Parallel()
	for _, fuel := range []int64{math.MinInt64 / 2, -1, 0, 1} {
		for _, name := range []string{"spin", "straight", "count", "multi"} {
			i := run(t, wazero.NewRuntimeConfigInterpreter(), instrument(t, fixture(t, "control")).Code)
			args := make([]uint64, len(i.ExportedFunction(name).Definition().ParamTypes()))
			if _, _, err := i.call(fuel, name, args...); !errors.Is(err, errOutOfFuel) {
				t.Errorf("%s with %d: %v", name, fuel, err)
			}
		}
	}
	i := run(t, wazero.NewRuntimeConfigInterpreter(), instrument(t, fixture(t, "bulk")).Code)
	if _, _, err := i.call(1000, "fill", 0, math.MaxUint32); !errors.Is(err, errOutOfFuel) {
		t.Errorf("a length of 4 GiB: %v", err)
	}
	if _, _, err := i.call(math.MaxInt64, "fill", 0, math.MaxUint32); err == nil || !strings.Contains(err.Error(), "out of bounds") {
		t.Errorf("a length of 4 GiB with all the fuel there is: %v", err)
	}
}

// Between two checks a call executes no more instructions than one function contains, also
// while it returns from a recursion.
func TestInstrument_StopsWorkAfterRecursion(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		i := run(t, e.config(), instrument(t, fixture(t, "tails")).Code)
		_, all, err := i.call(plenty, "deep", 500)
		if err != nil {
			t.Fatal(err)
		}
		const once = 8
		before := i.ExportedGlobal("done").Get()
		if before != 501*once {
			t.Fatalf("%d done", before)
		}
		if _, _, err := i.call(all-500*32, "deep", 500); !errors.Is(err, errOutOfFuel) {
			t.Errorf("%s: %v", e.name, err)
		}
		if done := i.ExportedGlobal("done").Get() - before; done > 2*once {
			t.Errorf("%s: %d done after the fuel had run out", e.name, done)
		}
	}
}

func TestInstrument_KeepsReasonOfTraps(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{"behind_unreachable": "unreachable", "table_fill": "table"} {
		i := run(t, wazero.NewRuntimeConfigCompiler(), instrument(t, fixture(t, "bulk")).Code)
		args := make([]uint64, len(i.ExportedFunction(name).Definition().ParamTypes()))
		for n := range args {
			args[n] = 1000
		}
		if _, _, err := i.call(plenty, name, args...); err == nil || errors.Is(err, errOutOfFuel) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInstrument_ChargesStartFunctions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	start := func(fuel int64) (left int64, logged uint64, err error) {
		m, err := meter.Instrument(fixture(t, "start"), meter.Options{})
		if err != nil || !m.Start {
			t.Fatal(m, err)
		}
		r := wazero.NewRuntime(ctx)
		defer func() { _ = r.Close(ctx) }()
		// The host module is a guest, because only guests export globals.
		base := asm{0, 'a', 's', 'm', 1, 0, 0, 0}
		base.section(1, 1, 0x60, 1, 0x7f, 0)
		base.section(3, 1, 0)
		base.section(6, 2, 0x7f, 0, 0x41, 7, 0x0b, 0x7f, 1, 0x41, 0, 0x0b)
		base.section(7, 3, 3, 'l', 'o', 'g', 0, 0, 4, 'b', 'a', 's', 'e', 3, 0, 4, 'l', 'a', 's', 't', 3, 1)
		base.section(10, 1, 6, 0, 0x20, 0, 0x24, 1, 0x0b)
		env, err := r.InstantiateWithConfig(ctx, base, wazero.NewModuleConfig().WithName("env"))
		if err != nil {
			t.Fatal(err)
		}
		i, err := r.Instantiate(ctx, m.Code)
		if err != nil || env.ExportedGlobal("last").Get() != 0 {
			t.Fatalf("instantiation ran the start function: %v", err)
		}
		i.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal).Set(uint64(fuel))
		if _, err := i.ExportedFunction(meter.StartExport).Call(ctx); err != nil {
			return 0, 0, err
		}
		return int64(i.ExportedGlobal(meter.FuelGlobal).Get()), env.ExportedGlobal("last").Get(), nil
	}
	// Entry and local, the call and its arguments; then the loop.
	const cost = 1 + 1 + 2 + 100*12
	left, logged, err := start(5000)
	if err != nil || left != 5000-cost || logged != 4950 {
		t.Errorf("%d left, %d logged, %v", left, logged, err)
	}
	if _, _, err := start(cost - 1); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("with too little: %v", err)
	}
}

func TestInstrument_LetsHostFunctionsCharge(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			ctx := t.Context()
			r := wazero.NewRuntimeWithConfig(ctx, e.config())
			defer func() { _ = r.Close(ctx) }()
			left := int64(0) // if it is not the remaining fuel less 100
			var seen []int64
			_, err := r.NewHostModuleBuilder("env").NewFunctionBuilder().
				WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
					fuel := m.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal)
					seen = append(seen, int64(fuel.Get()))
					if fuel.Set(fuel.Get() - 100); left != 0 {
						fuel.Set(uint64(left))
					}
				}), nil, nil).Export("spend").Instantiate(ctx)
			if err != nil {
				t.Fatal(err)
			}
			m, err := r.Instantiate(ctx, instrument(t, fixture(t, "host")).Code)
			if err != nil {
				t.Fatal(err)
			}
			i := &instance{Module: m, ctx: ctx, fuel: m.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal)}
			_, ticks, err := i.call(10_000, "work", 3)
			if err != nil || ticks != 1+3*(7+100) {
				t.Errorf("%d ticks, %v", ticks, err)
			}
			if want := []int64{9987, 9880, 9773}; !slices.Equal(seen, want) {
				// 5 less than the rest, for the stack of the calling function.
				t.Errorf("the host saw %d, want %d", seen, want)
			}
			for _, left = range []int64{-1, math.MinInt64 / 2} {
				for _, name := range []string{"work", "once"} {
					if _, _, err := i.call(10_000, name, make([]uint64, len(i.ExportedFunction(name).Definition().ParamTypes()))...); !errors.Is(err, errOutOfFuel) {
						t.Errorf("%s: the host left %d: %v", name, left, err)
					}
				}
			}
		})
	}
}

func TestInstrument_ReturnsModuleProperties(t *testing.T) {
	t.Parallel()
	m := instrument(t, fixture(t, "start"))
	want := "[{env log function (i32) -> ()} {env base global () -> ()}] [{sum global 1 () -> ()}] start"
	if got := fmt.Sprintf("%v %v %s", m.Imports, m.Exports, map[bool]string{true: "start"}[m.Start]); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	m = instrument(t, fixture(t, "bulk"))
	if got := fmt.Sprint(*m.Memory, m.Tables, m.Functions); got != "{2 4 true} [{8 20 true} {4 65536 true}] 12" {
		t.Error(got)
	}
	e, ok := m.Export("copy")
	if !ok || e.Signature.String() != "(i32, i32, i32) -> ()" || e.Kind != meter.KindFunction {
		t.Error(e, ok)
	}
	if _, ok := m.Export(meter.FuelGlobal); ok {
		t.Error("the fuel is listed")
	}
	if _, err := meter.Instrument(m.Code, meter.Options{}); !errors.Is(err, meter.ErrReserved) {
		t.Errorf("metered twice: %v", err)
	}
}

// Modules can allocate memory by tables, which no engine limits.
func TestInstrument_LimitsTables(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		i := run(t, e.config(), instrument(t, fixture(t, "bulk")).Code)
		results, _, err := i.call(plenty, "table_grow_unbounded", 65_536-4+1)
		if err != nil || results[0] != minusOne {
			t.Errorf("one more than allowed: %v, %v", results, err)
		}
		results, _, err = i.call(plenty, "table_grow_unbounded", 65_536-4)
		if err != nil || results[0] != 4 {
			t.Errorf("what is allowed: %v, %v", results, err)
		}
	}
}
