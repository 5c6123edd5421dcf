package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// A gang must evict two instances under a budget of one an hour. It is not evaluated again and
// again: the evictions of a plan that failed never leave the window. Once others have left it, a
// gang that the budget permits is placed.
func TestGang_OwnEvictionsDoNotCauseRechecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, budget string
		gang         bool
		placed       int
	}{
		{"never enough", "maxEvictions: 1", true, 1},
		{"enough once the window has passed", "maxEvictions: 2", true, 3},
		{"not a gang: one after the other", "maxEvictions: 1", false, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := scenario.Decode("rate.yaml", strings.NewReader(`version: 1
name: rate
nodes: [{id: n1, capacity: {cpu: 4}}, {id: n2, capacity: {cpu: 4}}, {id: n3, capacity: {cpu: 4}}]
scheduler: {preemption: {service: true, batch: true}}
budgets: [{name: b, labels: {app: low}, window: 1h, `+c.budget+`}]
jobs:
  - {id: low, type: batch, priority: 30, groups: [{name: g, count: 3, resources: {cpu: 4}, labels: {app: low}}]}
  - {id: one, type: batch, priority: 80, groups: [{name: g, count: 1, resources: {cpu: 4}}]}
  - {id: gang, type: batch, priority: 70, allAtOnce: `+fmt.Sprint(c.gang)+`, groups: [{name: g, count: 2, resources: {cpu: 4}}]}
running:
  - {id: l1, job: low, group: g, node: n1, startedAt: -1h}
  - {id: l2, job: low, group: g, node: n2, startedAt: -1h}
  - {id: l3, job: low, group: g, node: n3, startedAt: -1h}
events: [{at: 0s, submit: one}, {at: 10m, submit: gang}]
`))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			run, err := sim.Play(ctx, f, sim.Options{Resolve: resolve})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(run.Result.Placements); got != c.placed {
				t.Errorf("%d placed, want %d: %v", got, c.placed, run.Result.Unplaced)
			}
		})
	}
}
