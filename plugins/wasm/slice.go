package wasm

import (
	"context"
	"reflect"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/cede-scheduler/cede/core/policy"
)

// A call receives its fuel in slices. Go cannot interrupt compiled code, so a garbage
// collection waits for every running guest. When a slice is used up, the guest calls a
// function that the host observes: the goroutine can stop there for the collector and the
// scheduler, and the host checks the clock and the engine's stack before it adds the next
// slice.
const (
	// sliceTicks is about 30 µs of compiled code. It bounds the growth of the stack between
	// two checks to sliceTicks times 64 bytes.
	sliceTicks = 1 << 17
	// maxStack is the maximum size of the engine's stack for one call, in bytes. The engine
	// doubles it, and checks happen between slices, so it can be exceeded by sliceTicks
	// times 64 bytes, doubled.
	maxStack = 4 << 20
	// maxIdleStack is the size of the engine's stack above which an instance is replaced,
	// because the engine never reduces it.
	maxIdleStack = 1 << 20
	// interpreterSlowdown extends the time limit for the interpreter.
	interpreterSlowdown = 32
)

// stop is the reason why the host ended a call.
type stop uint8

const (
	stopNone  stop = iota
	stopFuel       // the fuel is used up
	stopTime       // the call exceeds its time limit
	stopStack      // the engine's stack exceeds maxStack
)

// refill adds the next slice to the negative fuel of a guest, or ends the call: it leaves the
// fuel negative and sets why.
func (g *guest) refill() {
	left := int64(g.fuel.Get()) + g.rest
	switch {
	case left < 0:
		g.why = stopFuel
	case stackSize(g.running) > maxStack:
		g.why = stopStack
	case time.Since(g.started) > g.timeLimit:
		g.why = stopTime
	default:
		g.setFuel(left)
		return
	}
	g.fuel.Set(^uint64(0)) // -1, as metered code sets it
	g.rest = 0
}

// setFuel divides an amount of fuel into the next slice and the rest.
func (g *guest) setFuel(fuel int64) {
	next := min(fuel, sliceTicks)
	g.rest = fuel - next
	g.fuel.Set(uint64(next))
}

// fuelLeft returns the remaining fuel, which is negative if it is used up.
func (g *guest) fuelLeft() int64 { return int64(g.fuel.Get()) + g.rest }

// sliceListener observes the function of metered modules that requests fuel. It has no state,
// because instances of several modules share compiled code.
type sliceListener struct{}

var _ experimental.FunctionListener = sliceListener{}

// Before refills the fuel of the calling guest.
func (sliceListener) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	guestOf(ctx).refill()
}

// After is not used.
func (sliceListener) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort is not used.
func (sliceListener) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// stackSize returns the size of the stack that the engine has allocated for calls of a
// function, in bytes. The engine bounds it at 400 MB only and does not export it, so it is
// read by reflection. The interpreter has no such stack, and bounds the depth of calls.
func stackSize(f api.Function) int {
	stack, ok := engineStack(f)
	if !ok {
		return 0
	}
	return stack.Len()
}

// engineStack returns the field of a compiled function that holds its stack, and false for
// an interpreted one.
func engineStack(f api.Function) (reflect.Value, bool) {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer {
		return reflect.Value{}, false
	}
	stack := v.Elem().FieldByName("stack")
	if !stack.IsValid() || stack.Kind() != reflect.Slice || stack.Type().Elem().Kind() != reflect.Uint8 {
		return reflect.Value{}, false
	}
	return stack, true
}

// checkEngine returns an error if the stack of compiled functions cannot be measured.
func checkEngine(f api.Function) *policy.Error {
	if _, ok := engineStack(f); !ok && !isInterpreted(f) {
		return fault(policy.FaultHost, "use the interpreter", "cannot measure the stack of this version of the engine")
	}
	return nil
}

// isInterpreted reports whether the interpreter runs a function.
func isInterpreted(f api.Function) bool {
	t := reflect.TypeOf(f)
	return t.Kind() == reflect.Pointer && strings.HasSuffix(t.Elem().PkgPath(), "/interpreter")
}

// timeLimitOf returns the time limit of a function's calls.
func (m *Module) timeLimitOf(f api.Function) time.Duration {
	if isInterpreted(f) {
		return m.limits.Time * interpreterSlowdown
	}
	return m.limits.Time
}
