package app

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/cede-scheduler/cede/core/heap"
)

// A command allocates much and retains little: its heap may grow to eleven times the live
// heap before a collection, so that most commands end before the first one. If the heap
// reaches the soft limit, it is collected as often as needed to stay there.
const (
	commandGCPercent   = 1000
	commandMemoryLimit = 3500 << 20 // bytes
)

// TuneForCommand trades memory for speed in a process that ends after one command.
func TuneForCommand() { tune(commandGCPercent, commandMemoryLimit) }

// TuneForService restores the defaults of Go, because a service retains its heap and shares
// the machine.
func TuneForService() { tune(100, math.MaxInt64) }

// KeepHeadroom lets the heap of a server grow by a part of the usable memory between collections,
// until stop is called: see heap.Keep. GOGC of the environment takes precedence.
func KeepHeadroom(memory int64) (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	return heap.Keep(heap.Headroom(memory))
}

// tune sets the garbage collector. GOGC and GOMEMLIMIT of the environment take precedence.
func tune(percent int, limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
