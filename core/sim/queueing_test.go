package sim_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
)

// A pending job is evaluated at the instant of any event that may unblock it. A job
// that can be placed never waits behind a job that cannot.
func TestQueueing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, scenario, want string }{
		{"capacity is freed", oneNode + `
jobs:
  - {id: first, priority: 50, groups: [{name: g, resources: {cpu: 10}}]}
  - {id: second, priority: 50, groups: [{name: g, resources: {cpu: 10}}]}
running: [{id: a, job: first, group: g, node: n1}]
events: [{at: 1s, submit: second}, {at: 90s, stop: first}]
`, `1m30s second.g[0]@n1
runs second.g[0]`},
		{"an allocation completes", oneNode + `
jobs:
  - {id: first, type: batch, priority: 50, groups: [{name: g, resources: {cpu: 10}, duration: 5m}]}
  - {id: second, priority: 50, groups: [{name: g, resources: {cpu: 10}}]}
running: [{id: a, job: first, group: g, node: n1, startedAt: -1m}]
events: [{at: 1s, submit: second}]
`, `4m0s second.g[0]@n1
runs second.g[0]`},
		{"a node becomes ready", `
nodes: [{id: n1, capacity: {cpu: 10}, ready: false}]
jobs: [{id: j, priority: 50, groups: [{name: g, resources: {cpu: 10}}]}]
events: [{at: 1s, submit: j}, {at: 40s, nodeUp: n1}]
`, `40s j.g[0]@n1
runs j.g[0]`},
		{"a budget allows another disruption because a replacement started", `
nodes: [{id: n1, capacity: {cpu: 5}}, {id: n2, capacity: {cpu: 5}, ready: false}]
jobs:
  - {id: web, priority: 10, groups: [{name: g, count: 2, resources: {cpu: 5}, labels: {app: web}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 5}, constraints: [{attribute: node.id, operator: "=", value: n1}]}]}
budgets: [{name: web, labels: {app: web}, minAvailable: 1, enforcement: strict}]
running: [{id: a, job: web, group: g, node: n1, startedAt: -1h}]
events: [{at: 0s, submit: web}, {at: 1s, submit: top}, {at: 2m, nodeUp: n2}]
`, `2m0s web.g[1]@n2
2m0s top.g[0]@n1 over a
web.g lacks 1: 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 0 or less
runs top.g[0] web.g[1]`},
		{"a large job that cannot be placed does not block a small one", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: huge, priority: 90, allAtOnce: true, groups: [{name: g, count: 500, resources: {cpu: 10}}]}
  - {id: small, priority: 10, groups: [{name: g, count: 2, resources: {cpu: 10}}]}
events: [{at: 0s, submit: huge}, {at: 0s, submit: small}]
`, `0s small.g[0]@n1
0s small.g[1]@n2
huge.g lacks 500: all at once: an attempt placed 2 of 500 instances; for the next one, 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 80 or less
runs small.g[0] small.g[1]`},
		{"a large job is placed partially, and small jobs use the remaining nodes", `
nodes: [{id: n1, capacity: {cpu: 10}, attributes: {disk: ssd}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: huge, priority: 90, groups: [{name: g, count: 500, resources: {cpu: 6}, constraints: [{attribute: disk, operator: "=", value: ssd}]}]}
  - {id: small, priority: 10, groups: [{name: g, count: 2, resources: {cpu: 4}}]}
events: [{at: 0s, submit: huge}, {at: 0s, submit: small}]
`, `0s huge.g[0]@n1
0s small.g[0]@n1
0s small.g[1]@n2
huge.g lacks 499: 0 of 2 nodes: 1 lacks cpu, 1 excluded by disk = ssd; eviction does not help: on 1 nothing has a priority of 80 or less
runs huge.g[0] small.g[0] small.g[1]`},
		{"pending jobs are placed by priority, then by submission", oneNode + `
jobs:
  - {id: first, priority: 50, groups: [{name: g, resources: {cpu: 10}}]}
  - {id: low, priority: 10, preemptionPolicy: Never, groups: [{name: g, resources: {cpu: 4}}]}
  - {id: early, priority: 40, groups: [{name: g, resources: {cpu: 4}}]}
  - {id: late, priority: 40, groups: [{name: g, resources: {cpu: 4}}]}
running: [{id: a, job: first, group: g, node: n1}]
events: [{at: 1s, submit: low}, {at: 2s, submit: early}, {at: 3s, submit: late}, {at: 9s, stop: first}]
`, `9s early.g[0]@n1
9s late.g[0]@n1
low.g lacks 1: 0 of 1 node: 1 lacks cpu; no preemption: the job's preemptionPolicy is Never
runs early.g[0] late.g[0]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := play(t, decode(t, c.scenario), sim.Options{})
			if got := detailedTranscript(run.Result); got != c.want {
				t.Errorf("got\n%s\n\nwant\n%s", got, c.want)
			}
		})
	}
}
