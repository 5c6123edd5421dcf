package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// guest is the state of a running module that its imported functions use.
type guest struct {
	memory api.Memory
	fuel   api.MutableGlobal // the current slice; see refill

	rest      int64 // fuel of the current call beyond the slice
	started   time.Time
	timeLimit time.Duration
	running   api.Function // the called function
	why       stop         // why the host ended the current call

	now       int64 // time of the current frame
	monotonic int64 // never decreases and is never zero, which a Go runtime rejects
	random    *rand.Rand

	log *guestlog.Log
	// output holds the start of the standard output and standard error of the current call.
	// If the guest panics, it becomes part of the error.
	output  []byte
	partial []byte // incomplete line
}

// maxOutput is the maximum size of output in bytes.
const maxOutput = 4096

// errFuel unwinds a call that has used up its fuel in a host function. The fuel global is
// negative then.
var errFuel = errors.New("out of fuel")

type guestKey struct{}

// guestOf returns the guest that calls a host function.
func guestOf(ctx context.Context) *guest { return ctx.Value(guestKey{}).(*guest) }

// attach stores the memory and the fuel global of a module.
func (g *guest) attach(m api.Module) {
	g.memory = m.ExportedMemory(abi.ExportMemory)
	g.fuel, _ = m.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal)
}

// prepare resets the guest for a call of a function at the given time.
func (g *guest) prepare(f api.Function, now, fuel int64) {
	g.now, g.monotonic = now, max(g.monotonic, now, 1)
	g.output = g.output[:0]
	g.running, g.started, g.why = f, time.Now(), stopNone
	g.setFuel(fuel)
}

// charge charges the guest for work of the host. It panics with errFuel if the call must
// end.
func (g *guest) charge(ticks int64) {
	left := int64(g.fuel.Get()) - ticks
	g.fuel.Set(uint64(left))
	if left >= 0 {
		return
	}
	if g.refill(); g.why != stopNone {
		panic(errFuel)
	}
}

// view returns a part of the guest's memory, or false if it is out of bounds.
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

// keep adds text to the output that becomes part of an error.
func (g *guest) keep(text []byte) {
	g.output = append(g.output, text[:min(len(text), maxOutput-len(g.output))]...)
}

// keepLine is keep for a line without its end.
func (g *guest) keepLine(text []byte) {
	if len(g.output) > 0 {
		g.keep([]byte("\n"))
	}
	g.keep(text)
}

// write records output of the guest and logs complete lines.
func (g *guest) write(text []byte) {
	g.charge(int64(len(text)) / bytesPerTick)
	g.keep(text)
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		g.partial = append(g.partial, line[:min(len(line), abi.MaxLog-len(g.partial))]...)
		if !ended {
			return
		}
		g.charge(lineCost)
		g.logLine(abi.LevelInfo, g.partial)
		g.partial, text = g.partial[:0], rest
	}
}

// logLine logs one line.
func (g *guest) logLine(level int32, text []byte) {
	if len(text) == 0 {
		return
	}
	l := slogLevel(level)
	if !g.log.Enabled(l) {
		return
	}
	g.charge(logCost + int64(len(text)))
	g.log.Add(l, string(text))
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
