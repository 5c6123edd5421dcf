package sim_test

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// If a victim has not started, its node still holds allocations that stop for it. The
// preemptor waits for them as well.
func TestPlacement_WaitsForVictimsOfItsVictim(t *testing.T) {
	t.Parallel()
	const file = `
version: 1
name: second-wave
nodes: [{id: n1, capacity: {cpu: 1000}}]
jobs:
- {id: a, priority: 20, groups: [{name: g, resources: {cpu: 1000}, killTimeout: 30s}]}
- {id: m, type: batch, priority: 50, groups: [{name: g, resources: {cpu: 1000}, duration: 10s}]}
- {id: h, type: batch, priority: 90, groups: [{name: g, resources: {cpu: 1000}, duration: 60s}]}
running: [{id: a1, job: a, group: g, node: n1, startedAt: -1h}]
events: [{at: 0s, submit: m}, {at: 5s, submit: h}, {at: 5s, stop: a}]
`
	f, err := scenario.Decode("second-wave.yaml", strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	run, err := sim.Play(t.Context(), f, sim.Options{Resolve: resolve})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range run.Result.Placements {
		got = append(got, p.At.String()+" "+p.Alloc)
	}
	// h starts at 30s, when a1 has stopped, and ends at 1m30s.
	if want := "0s m.g[0], 5s h.g[0], 1m30s m.g[0]#1"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}
