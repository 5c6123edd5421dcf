package sim_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
)

// Allocations on a disconnected node are retained, replaced or lost as configured.
func TestDisconnectedNodes(t *testing.T) {
	t.Parallel()
	const head = `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
`
	for _, c := range []struct{ name, scenario, want string }{
		{"retained until the node returns, then continues", head + `
jobs: [{id: j, type: batch, groups: [{name: g, resources: {cpu: 6}, duration: 3h, disconnect: {replace: false}}]}]
events: [{at: 0s, submit: j}, {at: 1h, nodeDown: n1}, {at: 20h, nodeUp: n1}]
`, "0s j.g[0]@n1\nruns "},
		{"lost after lostAfter", head + `
jobs: [{id: j, groups: [{name: g, resources: {cpu: 6}, disconnect: {lostAfter: 6h, replace: false}}]}]
events: [{at: 0s, submit: j}, {at: 1h, nodeDown: n1}, {at: 20h, nodeUp: n1}]
`, "0s j.g[0]@n1\n7h0m0s j.g[0]#1@n2\nruns j.g[0]#1"},
		{"replaced until the node returns", head + `
jobs: [{id: j, groups: [{name: g, resources: {cpu: 6}, disconnect: {}}]}]
events: [{at: 0s, submit: j}, {at: 1h, nodeDown: n1}, {at: 20h, nodeUp: n1}]
`, "0s j.g[0]@n1\n1h0m0s j.g[0]#1@n2\nruns j.g[0]"},
		{"disconnected at time 0", head + `
jobs: [{id: j, groups: [{name: g, resources: {cpu: 6}, disconnect: {lostAfter: 6h, replace: false}}]}]
running: [{id: a, job: j, group: g, node: n1, startedAt: -1h}]
events: [{at: 0s, nodeDown: n1}]
`, "6h0m0s j.g[0]#1@n2\nruns j.g[0]#1"},
		{"stopped meanwhile: stops when the node returns", head + `
jobs:
  - {id: j, groups: [{name: g, resources: {cpu: 6}, killTimeout: 10s, disconnect: {replace: false}}]}
  - {id: k, groups: [{name: g, resources: {cpu: 6}}]}
events: [{at: 0s, submit: j}, {at: 1h, nodeDown: n1}, {at: 2h, stop: j}, {at: 20h, nodeUp: n1}, {at: 20h, submit: k}]
`, "0s j.g[0]@n1\n20h0m0s k.g[0]@n1\nruns k.g[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := detailedTranscript(play(t, decode(t, c.scenario), sim.Options{}).Result); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
