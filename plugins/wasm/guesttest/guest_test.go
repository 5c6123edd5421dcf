// Package guesttest owns the tests of the guest libraries: their modules must answer the
// frames of sdk/abi/testdata, and random ones, as the same policy in Go does, to the bit.
// It contains only tests, and loads modules with the engine directly, so that a failure
// points to the library and not to a host.
package guesttest

import (
	"context"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// guests is the directory of the tested modules.
const guests = "../../../sdk/abi/testdata/guests/"

// languages are those with a guest library.
var languages = []string{"c", "rust", "assemblyscript"}

// guest is an instance of a module.
type guest struct {
	t        testing.TB
	module   api.Module
	at, size uint32
}

// compiled is a module from which instances are started.
type compiled struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
	log     *[]string
}

// load starts an instance of a module in guests.
func load(t testing.TB, name string) *guest {
	t.Helper()
	code, err := os.ReadFile(guests + name + ".wasm")
	if err != nil {
		t.Fatalf("%v; write it with %sbuild.sh", err, guests)
	}
	return compile(t, code).start(t)
}

func compile(t testing.TB, code []byte) *compiled {
	t.Helper()
	ctx := context.Background()
	m := &compiled{runtime: wazero.NewRuntime(ctx), log: new([]string)}
	t.Cleanup(func() { _ = m.runtime.Close(ctx) })
	_, err := m.runtime.NewHostModuleBuilder(abi.ImportModule).NewFunctionBuilder().
		WithFunc(func(_ context.Context, guest api.Module, _, at, n uint32) {
			line, _ := guest.Memory().Read(at, n)
			*m.log = append(*m.log, string(line))
		}).Export(abi.ImportLog).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if m.code, err = m.runtime.CompileModule(ctx, code); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *compiled) start(t testing.TB) *guest {
	t.Helper()
	ctx := context.Background()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize)
	module, err := m.runtime.InstantiateModule(ctx, m.code, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = module.Close(ctx) })
	return &guest{t: t, module: module}
}

func (g *guest) invoke(name string, args ...uint64) int32 {
	g.t.Helper()
	result, err := g.module.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	return int32(uint32(result[0]))
}

// buffer returns a buffer for a frame.
func (g *guest) buffer(size int) []byte {
	g.t.Helper()
	if uint32(size) > g.size {
		g.at, g.size = uint32(g.invoke(abi.ExportAlloc, uint64(size))), uint32(size)
		if g.at == 0 || g.at%abi.Alignment != 0 {
			g.t.Fatalf("%s gave %d", abi.ExportAlloc, g.at)
		}
	}
	frame, ok := g.module.Memory().Read(g.at, uint32(size))
	if !ok {
		g.t.Fatalf("%s gave memory that there is not", abi.ExportAlloc)
	}
	return frame
}

// call processes the frame in the buffer that room returned.
func (g *guest) call(op abi.Op, size int) (abi.Status, []byte) {
	g.t.Helper()
	status := abi.Status(g.invoke(abi.Exports[op], uint64(g.at), uint64(size)))
	return status, g.buffer(size) // memory may have moved
}

// answer processes a copy of a frame.
func (g *guest) answer(op abi.Op, frame []byte) (abi.Status, []byte) {
	g.t.Helper()
	copy(g.buffer(len(frame)), frame)
	return g.call(op, len(frame))
}

// ask sends an encoded request to the guest, which must succeed.
func (g *guest) ask(op abi.Op, e *abi.Encoder) []byte {
	g.t.Helper()
	e.Write(g.buffer(e.Size()))
	status, frame := g.call(op, e.Size())
	if status != abi.OK {
		g.t.Fatalf("%s: status %d: %s", abi.Names[op], status, e.ErrorText(frame))
	}
	return frame
}

// describe returns the description of the guest.
func (g *guest) describe() abi.Description {
	g.t.Helper()
	var e abi.Encoder
	e.Describe()
	d, err := e.Description(g.ask(abi.OpDescribe, &e))
	if err != nil {
		g.t.Fatal(err)
	}
	return d
}

// configure sends a configuration to the guest.
func (g *guest) configure(c *policy.Config) {
	g.t.Helper()
	var e abi.Encoder
	e.Configure(c)
	g.ask(abi.OpConfigure, &e)
}

// rounds returns a share of the random cases of a test. The race detector slows all tests
// down and finds no races in sequential guests.
func rounds(t *testing.T, share int) int {
	if soak.Race {
		share *= 20
	}
	return policytest.Count(t) / share
}

// inLanguages runs a test with the guest of each language.
func inLanguages(t *testing.T, name string, test func(t *testing.T, g *guest)) {
	for _, language := range languages {
		t.Run(language, func(t *testing.T) { test(t, load(t, name+"-"+language)) })
	}
}
