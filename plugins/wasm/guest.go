package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"

	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// guest is a running module as the functions that it imports see it.
type guest struct {
	memory api.Memory
	fuel   api.MutableGlobal

	now       int64 // of the frame at hand
	monotonic int64 // never falls, and is never zero: a Go runtime refuses that
	random    *rand.Rand

	log *guestlog.Log
	// output is what went to standard output and standard error during the call,
	// cut: the last words of a guest that panics.
	output  []byte
	partial []byte // a line that is not finished
}

// maxOutput is how much of a guest's last words is kept.
const maxOutput = 4096

// errFuel unwinds a call that has spent its fuel within a host function. The
// global says the same.
var errFuel = errors.New("out of fuel")

type guestKey struct{}

// guestOf finds the guest that calls a host function.
func guestOf(ctx context.Context) *guest { return ctx.Value(guestKey{}).(*guest) }

// attach learns where a module keeps its memory and its fuel.
func (g *guest) attach(m api.Module) {
	g.memory = m.ExportedMemory(abi.ExportMemory)
	g.fuel, _ = m.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal)
}

// prepare prepares for a call at a time.
func (g *guest) prepare(now, fuel int64) {
	g.now, g.monotonic = now, max(g.monotonic, now, 1)
	g.output = g.output[:0]
	g.fuel.Set(uint64(fuel))
}

// charge charges the guest for work that the host does for it.
func (g *guest) charge(ticks int64) {
	left := int64(g.fuel.Get()) - ticks
	if left < 0 {
		g.fuel.Set(^uint64(0)) // -1, as after metered code that runs out
		panic(errFuel)
	}
	g.fuel.Set(uint64(left))
}

// view is a part of the guest's memory; false where it lies outside.
func (g *guest) view(at uint32, n uint64) ([]byte, bool) {
	if uint64(at)+n > uint64(g.memory.Size()) {
		return nil, false
	}
	return g.memory.Read(at, uint32(n))
}

func (g *guest) put32(at, value uint32) bool {
	b, ok := g.view(at, 4)
	if ok {
		binary.LittleEndian.PutUint32(b, value)
	}
	return ok
}

// write takes what the guest prints, and logs it line by line.
func (g *guest) write(text []byte) {
	g.charge(int64(len(text)) / bytesPerTick)
	g.output = append(g.output, text[:min(len(text), maxOutput-len(g.output))]...)
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		g.partial = append(g.partial, line[:min(len(line), abi.MaxLog-len(g.partial))]...)
		if !ended {
			return
		}
		g.logLine(abi.LevelInfo, g.partial)
		g.partial, text = g.partial[:0], rest
	}
}

// logLine logs one line.
func (g *guest) logLine(level int32, text []byte) {
	if len(text) > 0 {
		g.charge(int64(len(text)) / bytesPerTick)
		if l := slogLevel(level); g.log.Enabled(l) {
			g.log.Add(l, string(text))
		}
	}
}

// slogLevel returns the log level for a level of the ABI. Unknown levels are errors.
func slogLevel(level int32) slog.Level {
	switch level {
	case abi.LevelDebug:
		return slog.LevelDebug
	case abi.LevelInfo:
		return slog.LevelInfo
	case abi.LevelWarn:
		return slog.LevelWarn
	}
	return slog.LevelError
}
