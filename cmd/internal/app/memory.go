package app

import (
	"os"
	"runtime/debug"
)

// simulationGCPercent lets the heap grow to five times what lives before it is
// collected: a simulation allocates much and keeps little, and the largest trace
// still stays well under 2 GiB.
const simulationGCPercent = 400

// TuneForSimulation trades memory for time. What the user set by GOGC stands.
func TuneForSimulation() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(simulationGCPercent)
	}
}
