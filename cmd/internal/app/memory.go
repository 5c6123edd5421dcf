package app

import (
	"os"
	"runtime/debug"
)

// A simulation allocates much and keeps little: its heap may grow to five times
// what lives before it is collected, but from the soft limit on it is collected
// as often as it takes to stay there.
const (
	simulationGCPercent   = 400
	simulationMemoryLimit = 3 << 30 // bytes
)

// TuneForSimulation trades memory for time. What the user set by GOGC and
// GOMEMLIMIT stands.
func TuneForSimulation() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(simulationGCPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(simulationMemoryLimit)
	}
}
