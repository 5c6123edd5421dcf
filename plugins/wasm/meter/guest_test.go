package meter_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// guest is a module built by a toolchain.
type guest struct {
	name  string
	build func(testing.TB) []byte
}

var guests = []guest{
	{"C", func(t testing.TB) []byte { return buildC(t) }},
	{"C-SIMD", func(t testing.TB) []byte { return buildC(t, "-msimd128", "-ffast-math", "-fvectorize") }},
	{"Go", buildGo},
}

// buildC compiles and links in two steps: in one step clang runs any installed wasm-opt,
// and old ones do not support SIMD.
func buildC(t testing.TB, flags ...string) []byte {
	t.Helper()
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s: install clang and lld to run the C guests", tool)
		}
	}
	dir := t.TempDir()
	object, module := filepath.Join(dir, "score.o"), filepath.Join(dir, "score.wasm")
	compile := append([]string{"--target=wasm32", "-nostdlib", "-ffreestanding", "-O2"}, flags...)
	command(t, nil, "clang", append(compile, "-c", "testdata/guests/c/score.c", "-o", object)...)
	command(t, nil, "wasm-ld", "--no-entry", "--export-all", object, "-o", module)
	return read(t, module)
}

// goGuest caches the Go guest, which takes seconds to build.
var goGuest []byte

func buildGo(t testing.TB) []byte {
	t.Helper()
	if goGuest != nil {
		return goGuest
	}
	module := filepath.Join(t.TempDir(), "guest.wasm")
	command(t, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"},
		"go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", module, "./testdata/guests/go")
	goGuest = read(t, module)
	return goGuest
}

func command(t testing.TB, env []string, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(os.Environ(), env...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// runGuest instantiates a guest. A Go guest receives the ten WASI functions that its
// runtime requires, without clock, randomness or output.
func runGuest(t testing.TB, config wazero.RuntimeConfig, module []byte) *instance {
	t.Helper()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(256))
	t.Cleanup(func() { _ = r.Close(context.WithoutCancel(ctx)) })
	wasi := r.NewHostModuleBuilder("wasi_snapshot_preview1")
	for name, params := range map[string]string{
		"sched_yield": "", "proc_exit": "i", "args_get": "ii", "args_sizes_get": "ii", "clock_time_get": "iIi",
		"environ_get": "ii", "environ_sizes_get": "ii", "fd_write": "iiii", "random_get": "ii", "poll_oneoff": "iiii",
	} {
		stub(wasi, name, params)
	}
	if _, err := wasi.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	i := &instance{Module: m, ctx: ctx}
	if g := m.ExportedGlobal("cede_fuel"); g != nil {
		i.fuel = g.(api.MutableGlobal)
	}
	if m.ExportedFunction("_initialize") != nil {
		if _, _, err := i.call(plenty, "_initialize"); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// stub defines a function that returns success and zeros.
func stub(b wazero.HostModuleBuilder, name, params string) {
	var types []api.ValueType
	for _, p := range params {
		types = append(types, map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[p])
	}
	answer := func(_ context.Context, m api.Module, stack []uint64) {
		switch name {
		case "proc_exit":
			panic("exit")
		case "clock_time_get":
			m.Memory().WriteUint64Le(uint32(stack[2]), 1e9)
		case "args_sizes_get", "environ_sizes_get":
			m.Memory().WriteUint32Le(uint32(stack[0]), 0)
			m.Memory().WriteUint32Le(uint32(stack[1]), 0)
		}
		if name == "poll_oneoff" {
			stack[0] = 58 // not supported
		} else if len(stack) > 0 {
			stack[0] = 0
		}
	}
	results := []api.ValueType{api.ValueTypeI32}
	if name == "proc_exit" {
		results = nil
	}
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(answer), types, results).Export(name)
}

// guestCalls is a sequence of calls of a guest.
var guestCalls = []struct {
	function string
	args     []uint64
	onlyGo   bool
}{
	{"setup", []uint64{42}, false},
	{"score", []uint64{1, 64, 10}, false},
	{"pick", []uint64{64}, false},
	{"score", []uint64{128, 32, 0}, false},
	{"recurse", []uint64{12}, false},
	{"garbage", []uint64{500}, true},
	{"pick", []uint64{200}, false},
}

func TestGuests_BehaveIdenticallyMetered(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	for _, g := range guests {
		t.Run(g.name, func(t *testing.T) {
			module := g.build(t)
			metered := instrument(t, module).Code
			t.Logf("%d bytes, metered %d", len(module), len(metered))
			plain := session(t, wazero.NewRuntimeConfigCompiler(), module, g.name == "Go")
			compiled := session(t, wazero.NewRuntimeConfigCompiler(), metered, g.name == "Go")
			interpreted := session(t, wazero.NewRuntimeConfigInterpreter(), metered, g.name == "Go")
			if !slices.Equal(plain.results, compiled.results) || !slices.Equal(plain.results, interpreted.results) {
				t.Errorf("plain %x, metered %x, interpreted %x", plain.results, compiled.results, interpreted.results)
			}
			if !slices.Equal(compiled.ticks, interpreted.ticks) {
				t.Errorf("ticks of the compiler %d, of the interpreter %d", compiled.ticks, interpreted.ticks)
			}
			t.Logf("ticks %d", compiled.ticks)
		})
	}
}

type outcome struct {
	results []uint64
	ticks   []int64
}

func session(t testing.TB, config wazero.RuntimeConfig, module []byte, isGo bool) (o outcome) {
	t.Helper()
	i := runGuest(t, config, module)
	for _, c := range guestCalls {
		if c.onlyGo && !isGo {
			continue
		}
		results, ticks, err := i.call(plenty, c.function, c.args...)
		if err != nil {
			t.Fatalf("%s%v: %v", c.function, c.args, err)
		}
		o.results = append(o.results, results...)
		o.ticks = append(o.ticks, ticks)
	}
	return o
}
