package meter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
)

func BenchmarkMeterInstrument(b *testing.B) {
	for _, g := range guests {
		b.Run(g.name, func(b *testing.B) {
			module := g.build(b)
			b.SetBytes(int64(len(module)))
			b.ReportAllocs()
			var m *meter.Module
			for b.Loop() {
				m = instrument(b, module)
			}
			b.ReportMetric(float64(len(m.Code))/float64(len(module)), "size-ratio")
		})
	}
}

// BenchmarkMeterCompile reports how much longer the engine takes to compile a metered
// module.
func BenchmarkMeterCompile(b *testing.B) {
	for _, g := range guests {
		b.Run(g.name, func(b *testing.B) {
			module := g.build(b)
			metered := instrument(b, module).Code
			compile := func(module []byte) float64 {
				r := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfigCompiler())
				defer func() { _ = r.Close(b.Context()) }()
				start := time.Now()
				if _, err := r.CompileModule(b.Context(), module); err != nil {
					b.Fatal(err)
				}
				return float64(time.Since(start))
			}
			var ratio []float64
			for b.Loop() {
				plain := compile(module)
				ratio = append(ratio, compile(metered)/plain)
			}
			b.ReportMetric(median(ratio), "ratio")
		})
	}
}

// BenchmarkMeterRun reports the cost of metering: the median over pairs of runs, one
// metered and one not, because the machine may be busy.
func BenchmarkMeterRun(b *testing.B) {
	for _, work := range []struct {
		name     string
		function string
		args     []uint64
	}{
		{"1x64", "score", []uint64{1, 64, 10}},
		{"128x32", "score", []uint64{128, 32, 10}},
		{"pick", "pick", []uint64{500}},
		{"fib", "recurse", []uint64{20}},
		{"garbage", "garbage", []uint64{5000}},
	} {
		for _, g := range guests {
			if work.name == "garbage" && g.name != "Go" {
				continue
			}
			b.Run(g.name+"/"+work.name, func(b *testing.B) {
				module := g.build(b)
				plain := runGuest(b, wazero.NewRuntimeConfigCompiler(), module)
				metered := runGuest(b, wazero.NewRuntimeConfigCompiler(), instrument(b, module).Code)
				ratios(b, plain, metered, work.function, work.args)
			})
		}
	}
}

func ratios(b *testing.B, plain, metered *instance, function string, args []uint64) {
	b.Helper()
	var ticks int64
	for _, i := range []*instance{plain, metered} {
		_, _, _ = i.call(plenty, "setup", 42)
		_, _, _ = i.call(plenty, "score", 128, 32, 10)
		_, ticks, _ = i.call(plenty, function, args...)
	}
	calls := 1 + int(200*time.Microsecond/(took(plain, 10, function, args)/10+1))
	var with, without []float64
	var ratio []float64
	for b.Loop() {
		p, m := took(plain, calls, function, args), took(metered, calls, function, args)
		without = append(without, float64(p)/float64(calls))
		with = append(with, float64(m)/float64(calls))
		ratio = append(ratio, float64(m)/float64(p))
	}
	b.ReportMetric(median(ratio), "ratio")
	b.ReportMetric(slices.Min(with)/slices.Min(without), "min-ratio")
	b.ReportMetric(median(with), "metered-ns/call")
	b.ReportMetric(median(without), "plain-ns/call")
	b.ReportMetric(float64(ticks), "ticks/call")
}

// took returns the duration of a number of calls. It bypasses the test helpers, which
// allocate.
func took(i *instance, calls int, function string, args []uint64) time.Duration {
	f := i.ExportedFunction(function)
	stack := make([]uint64, max(len(args), 1))
	start := time.Now()
	for range calls {
		if i.fuel != nil {
			i.fuel.Set(plenty)
		}
		copy(stack, args)
		if err := f.CallWithStack(i.ctx, stack); err != nil {
			panic(err)
		}
	}
	return time.Since(start)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
