package sim_test

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// The reason distinguishes instances that ended from instances that were never
// submitted.
func TestUnplaced_DistinguishesEndedFromNotSubmitted(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"1 of 2 instances ran at time 0, and no event caused an evaluation: submit it to place the rest": `
jobs: [{id: j, groups: [{name: g, count: 2, resources: {cpu: 1000}}]}]
running: [{id: j1, job: j, group: g, node: n}]
`,
		"its instances ended": `
jobs: [{id: j, groups: [{name: g, count: 1, resources: {cpu: 1000}, duration: 1m}]}]
running: [{id: j1, job: j, group: g, node: n}]
`,
		"0 of 1 node: 1 lacks cpu": `
jobs: [{id: j, groups: [{name: g, count: 6, resources: {cpu: 1000}}]}]
running: [{id: j1, job: j, group: g, node: n}]
events: [{at: 1m, submit: j}]
`,
	} {
		run := play(t, decode(t, "nodes: [{id: n, capacity: {cpu: 4000}}]\nuntil: 5m\n"+text), sim.Options{Resolve: resolve})
		if got := run.Result.Unplaced; len(got) != 1 || !strings.HasPrefix(got[0].Reason, want) {
			t.Errorf("unplaced = %+v, want reason %q", got, want)
		}
		if got, waits := run.Result.Metrics.(*metrics.Metrics).Unplaced, strings.HasPrefix(want, "0 of"); got > 0 != waits {
			t.Errorf("%s: the metric counts %d", want, got)
		}
	}
}

// A job that is submitted again after a stop runs anew, as on servers, also if it was stopped and
// submitted in the instant in which its instance completed.
func TestPlay_StartsAnewAfterStop(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"1m", "2m"} {
		run := play(t, decode(t, `
nodes: [{id: n, capacity: {cpu: 4000}}]
until: 10m
jobs: [{id: j, type: batch, groups: [{name: g, count: 1, resources: {cpu: 1000}, duration: 1m, checkpoint: 10s}]}]
events: [{at: 0s, submit: j}, {at: `+at+`, stop: j}, {at: `+at+`, submit: j}]
`), sim.Options{Resolve: resolve})
		if n := len(run.Result.Placements); n != 2 {
			t.Errorf("stopped at %s: %d placements, want 2", at, n)
		}
	}
}
