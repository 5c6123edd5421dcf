package app

import (
	"os"
	"runtime/debug"
)

// A simulation allocates much and retains little: its heap may grow to eleven times
// the live heap before a collection. If the heap reaches the soft limit, it is
// collected as often as needed to stay there.
const (
	simulationGCPercent   = 1000
	simulationMemoryLimit = 3500 << 20 // bytes
)

// TuneForSimulation trades memory for speed. GOGC and GOMEMLIMIT of the environment take
// precedence.
func TuneForSimulation() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(simulationGCPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(simulationMemoryLimit)
	}
}
