package wasm

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// wasiModule is what guests that were built against WASI preview 1 import. The
// ten functions here are those that a Go module cannot do without. They answer
// so that nothing but the frame decides: there are no arguments and no
// environment, time stands still during a call, random numbers come from a fixed
// seed, and what is written goes to the log.
const wasiModule = "wasi_snapshot_preview1"

// Numbers of WASI.
const (
	errnoSuccess = 0
	errnoBadFile = 8
	errnoFault   = 21
	errnoInvalid = 28
	errnoNotSup  = 58

	clockRealtime  = 0
	clockMonotonic = 1
)

// hostFunc is a function that modules may import.
type hostFunc struct {
	module, name string
	signature    meter.Signature
	run          func(g *guest, stack []uint64)
}

// hostFuncs are all of them, by module.name.
var hostFuncs = byName(
	hostFunc{abi.ImportModule, abi.ImportLog, signature(params(i32, i32, i32)), log},
	hostFunc{wasiModule, "sched_yield", signature(nil, i32), schedYield},
	hostFunc{wasiModule, "proc_exit", signature(params(i32)), procExit},
	hostFunc{wasiModule, "args_get", signature(params(i32, i32), i32), succeed},
	hostFunc{wasiModule, "args_sizes_get", signature(params(i32, i32), i32), zeroSizes},
	hostFunc{wasiModule, "environ_get", signature(params(i32, i32), i32), succeed},
	hostFunc{wasiModule, "environ_sizes_get", signature(params(i32, i32), i32), zeroSizes},
	hostFunc{wasiModule, "clock_time_get", signature(params(i32, i64, i32), i32), clockTimeGet},
	hostFunc{wasiModule, "fd_write", signature(params(i32, i32, i32, i32), i32), fdWrite},
	hostFunc{wasiModule, "random_get", signature(params(i32, i32), i32), randomGet},
	hostFunc{wasiModule, "poll_oneoff", signature(params(i32, i32, i32, i32), i32), pollOneoff},
)

func params(types ...meter.ValueType) []meter.ValueType { return types }

func byName(list ...hostFunc) map[string]hostFunc {
	m := make(map[string]hostFunc, len(list))
	for _, f := range list {
		m[f.module+"."+f.name] = f
	}
	return m
}

// What calls of the host cost, in ticks: crossing over takes as long as some
// instructions, and work goes by length.
const (
	callCost     = 64
	bytesPerTick = 8
)

// provide makes the functions that a module imports available to it.
func provide(ctx context.Context, r wazero.Runtime, list []meter.Import) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, im := range list {
		f := hostFuncs[im.Module+"."+im.Name]
		b := builders[im.Module]
		if b == nil {
			b = r.NewHostModuleBuilder(im.Module)
			builders[im.Module] = b
		}
		run := api.GoModuleFunc(func(ctx context.Context, caller api.Module, stack []uint64) {
			g := guestOf(ctx)
			if g.fuel == nil { // in a start function
				g.attach(caller)
			}
			g.charge(callCost)
			f.run(g, stack)
		})
		b.NewFunctionBuilder().WithGoModuleFunction(run, types(f.signature.Params), types(f.signature.Results)).Export(im.Name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func types(list []meter.ValueType) []api.ValueType {
	out := make([]api.ValueType, len(list))
	for i, t := range list {
		out[i] = api.ValueType(t)
	}
	return out
}

func schedYield(_ *guest, stack []uint64) { stack[0] = errnoSuccess }

func succeed(_ *guest, stack []uint64) { stack[0] = errnoSuccess }

// procExit ends the instance: what runs is unwound to the host.
func procExit(_ *guest, stack []uint64) { panic(sys.NewExitError(uint32(stack[0]))) }

// zeroSizes answers that there are no arguments, and no environment.
func zeroSizes(g *guest, stack []uint64) {
	if !g.put32(uint32(stack[0]), 0) || !g.put32(uint32(stack[1]), 0) {
		stack[0] = errnoFault
		return
	}
	stack[0] = errnoSuccess
}

// clockTimeGet answers the time of the frame. It does not move during a call: a
// clock that does, even by itself, makes a Go guest's collector believe that it
// takes all the time there is, and stop.
func clockTimeGet(g *guest, stack []uint64) {
	now := g.now
	switch uint32(stack[0]) {
	case clockRealtime:
	case clockMonotonic:
		now = g.monotonic
	default:
		stack[0] = errnoInvalid
		return
	}
	stack[0] = errnoSuccess
	if b, ok := g.view(uint32(stack[2]), 8); ok {
		binary.LittleEndian.PutUint64(b, uint64(now))
	} else {
		stack[0] = errnoFault
	}
}

// pollOneoff ends a sleep at once: a Go runtime sleeps before it prints why it
// panics. There is nothing else to wait for.
func pollOneoff(g *guest, stack []uint64) {
	const subscription, event = 48, 32 // sizes; the first 8 bytes of both are the same
	from, to, n, count := uint32(stack[0]), uint32(stack[1]), uint64(uint32(stack[2])), uint32(stack[3])
	stack[0] = errnoFault
	in, ok1 := g.view(from, n*subscription)
	out, ok2 := g.view(to, n*event)
	if !ok1 || !ok2 {
		return
	}
	g.charge(int64(n))
	for ; len(in) > 0; in, out = in[subscription:], out[event:] {
		if in[8] != 0 {
			stack[0] = errnoNotSup // no clock
			return
		}
		userdata := [8]byte(in)
		clear(out[:event])
		copy(out, userdata[:])
	}
	if g.put32(count, uint32(n)) {
		stack[0] = errnoSuccess
	}
}

// randomGet is the same in every fresh instance.
func randomGet(g *guest, stack []uint64) {
	n := uint32(stack[1])
	b, ok := g.view(uint32(stack[0]), uint64(n))
	if !ok {
		stack[0] = errnoFault
		return
	}
	g.charge(int64(n) / bytesPerTick)
	if g.random == nil {
		g.random = rand.New(rand.NewPCG(0x63656465, 1))
	}
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, g.random.Uint64())
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(g.random.Uint32())
	}
	stack[0] = errnoSuccess
}

// fdWrite takes standard output and standard error.
func fdWrite(g *guest, stack []uint64) {
	fd, list, count, written := uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	if fd != 1 && fd != 2 {
		stack[0] = errnoBadFile
		return
	}
	stack[0] = errnoFault
	entries, ok := g.view(list, uint64(count)*8)
	if !ok {
		return
	}
	g.charge(int64(count))
	total := uint32(0)
	for ; len(entries) > 0; entries = entries[8:] {
		at, n := binary.LittleEndian.Uint32(entries), binary.LittleEndian.Uint32(entries[4:])
		text, ok := g.view(at, uint64(n))
		if !ok || total+n < total {
			return
		}
		total += n
		g.write(text)
	}
	if g.put32(written, total) {
		stack[0] = errnoSuccess
	}
}

// log takes a line from a guest that uses the ABI's own import.
func log(g *guest, stack []uint64) {
	level, at, n := int32(stack[0]), uint32(stack[1]), uint32(stack[2])
	if text, ok := g.view(at, uint64(min(n, abi.MaxLog))); ok {
		g.logLine(level, text)
	}
}
