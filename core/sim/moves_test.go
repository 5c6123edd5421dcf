package sim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// Scattered free capacity is joined by moving the smallest instance, whatever the names, and
// under every policy. Without moves the large instance stays unplaced.
func TestMoves_SmallInstanceMakesRoomForLargeOne(t *testing.T) {
	t.Parallel()
	for _, policy := range builtin.Names() {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(24) {
				f, names := renamed(t, "gangdefrag.yaml", "[abc]1?|big|n[123]", rand.New(rand.NewPCG(11, seed)))
				if run := play(t, f, sim.Options{Policy: policy}); len(run.Result.Unplaced) != 1 || len(run.Result.Moved) != 0 {
					t.Fatalf("seed %d, without moves: %d unplaced, %d moved", seed, len(run.Result.Unplaced), len(run.Result.Moved))
				}
				f.Scheduler.Moves = &scenario.Moves{PerJob: 1, Window: scenario.Duration(3600e9)}
				run := play(t, f, sim.Options{Policy: policy})
				r := run.Result
				if len(r.Unplaced) != 0 || len(r.Evicted) != 0 || len(r.Running) != 4 || len(r.Moved) != 1 || *run.Metrics.Moved != 1 {
					t.Fatalf("seed %d: %d unplaced, %d evicted, running %v, moved %+v", seed, len(r.Unplaced), len(r.Evicted), r.Running, r.Moved)
				}
				m := r.Moved[0]
				if from := names[m.Alloc]; from != "b1" && from != "c1" || m.Node == m.ToNode || m.LostWork != sim.At(3600e9) ||
					fmt.Sprint(run.Metrics.WastedWork) != "map[gpu:7200]" {
					t.Fatalf("seed %d: moved %s from %s to %s, wasted %v", seed, from, names[m.Node], names[m.ToNode], run.Metrics.WastedWork)
				}
				if !strings.Contains(strings.Join(r.Running, " "), m.To) {
					t.Fatalf("seed %d: %s does not run: %v", seed, m.To, r.Running)
				}
			}
		})
	}
}

// Capacity that becomes free on a node that can never take a waiting instance wakes it, if the
// node can take what is in its way elsewhere. The instance starts when the moved one has
// stopped.
func TestMoves_FreedCapacityElsewhereWakes(t *testing.T) {
	t.Parallel()
	f, err := scenario.Decode("wake", strings.NewReader(`
version: 1
name: wake
scheduler: {moves: {perJob: 1, window: 1h}}
nodes: [{id: n1, capacity: {gpu: 6}}, {id: n2, capacity: {gpu: 8}}]
jobs:
  - {id: ends, type: batch, priority: 90, groups: [{name: g, resources: {gpu: 4}, duration: 1h}]}
  - {id: stays, priority: 90, groups: [{name: g, resources: {gpu: 2}}]}
  - {id: small, priority: 50, groups: [{name: g, resources: {gpu: 2}, killTimeout: 5s}]}
  - {id: big, type: batch, priority: 50, groups: [{name: g, resources: {gpu: 8}, duration: 2h}]}
running:
  - {id: e, job: ends, group: g, node: n1, startedAt: 0s}
  - {id: x, job: stays, group: g, node: n1, startedAt: 0s}
  - {id: s, job: small, group: g, node: n2, startedAt: 0s}
events: [{at: 0s, submit: big}]
`))
	if err != nil {
		t.Fatal(err)
	}
	run := play(t, f, sim.Options{})
	if got, want := detailedTranscript(run.Result), "1h0m0s big.g[0]@n2\n1h0m0s small.g[0]#1@n1\nruns small.g[0]#1 x"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
