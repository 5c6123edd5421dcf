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

// wasiModule is the import module of guests built for WASI preview 1. These ten functions
// are what a Go module requires. They are deterministic, so that only the frame influences
// decisions: no arguments, no environment, constant time during a call, random numbers from
// a fixed seed, and output goes to the log.
const wasiModule = "wasi_snapshot_preview1"

// Constants of WASI.
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

// hostFuncs are all host functions by module.name.
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

// Cost of host functions in ticks, which must not be less than what the same time costs in
// the guest: a fixed cost per call, a share of the length, and a cost per line of output, of
// which a line that is logged is copied, cleaned and formatted.
const (
	callCost     = 200
	bytesPerTick = 8
	lineCost     = 64
	logCost      = 2000
	entryCost    = 32 // of an element in a list of buffers or subscriptions
)

// provide defines the functions that a module imports.
func provide(ctx context.Context, r wazero.Runtime, list []meter.Import) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, im := range list {
		f := hostFuncs[im.Module+"."+im.Name]
		b := builders[im.Module]
		if b == nil {
			b = r.NewHostModuleBuilder(im.Module)
			builders[im.Module] = b
		}
		run := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			g := guestOf(ctx)
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

// succeed does nothing and returns success.
func succeed(_ *guest, stack []uint64) { stack[0] = errnoSuccess }

// procExit unwinds to the host and ends the instance.
func procExit(_ *guest, stack []uint64) { panic(sys.NewExitError(uint32(stack[0]))) }

// zeroSizes reports that there are no arguments and no environment variables.
func zeroSizes(g *guest, stack []uint64) {
	if !g.put32(uint32(stack[0]), 0) || !g.put32(uint32(stack[1]), 0) {
		stack[0] = errnoFault
		return
	}
	stack[0] = errnoSuccess
}

// clockTimeGet returns the time of the frame. It is constant during a call: with a moving
// clock, the garbage collector of a Go guest assumes that it uses all the time, and stops.
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

// pollOneoff ends a sleep immediately: a Go runtime sleeps before it prints a panic. Other
// events do not exist.
func pollOneoff(g *guest, stack []uint64) {
	const subscription, event = 48, 32 // sizes in bytes; both start with the same 8 bytes
	from, to, n, count := uint32(stack[0]), uint32(stack[1]), uint64(uint32(stack[2])), uint32(stack[3])
	stack[0] = errnoFault
	in, ok1 := g.view(from, n*subscription)
	out, ok2 := g.view(to, n*event)
	if !ok1 || !ok2 {
		return
	}
	g.charge(int64(n) * entryCost)
	for ; len(in) > 0; in, out = in[subscription:], out[event:] {
		if in[8] != 0 {
			stack[0] = errnoNotSup // not a clock
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

// randomGet returns the same sequence in every new instance.
func randomGet(g *guest, stack []uint64) {
	n := uint32(stack[1])
	b, ok := g.view(uint32(stack[0]), uint64(n))
	if !ok {
		stack[0] = errnoFault
		return
	}
	g.charge(int64(n) * 2)
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

// fdWrite records standard output and standard error.
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
	g.charge(int64(count) * entryCost)
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

// log logs a line of a guest that uses the ABI's import.
func log(g *guest, stack []uint64) {
	level, at, n := int32(stack[0]), uint32(stack[1]), uint32(stack[2])
	if text, ok := g.view(at, uint64(min(n, abi.MaxLog))); ok {
		if level >= abi.LevelError {
			g.keepLine(text) // the reason, if the guest traps now
		}
		g.logLine(level, text)
	}
}
