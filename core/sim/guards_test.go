package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
)

// detailedTranscript is transcript with victims on other nodes, violated budgets, and
// the reasons of unplaced instances.
func detailedTranscript(r *sim.Result) string {
	var lines []string
	for _, p := range r.Placements {
		line := fmt.Sprintf("%s %s@%s", p.At, p.Alloc, p.Node)
		if len(p.Preempted) > 0 {
			line += " over " + strings.Join(p.Preempted, " ")
		}
		for _, node := range slices.Sorted(maps.Keys(p.PreemptedElsewhere)) {
			line += ", " + node + ": " + strings.Join(p.PreemptedElsewhere[node], " ")
		}
		lines = append(lines, line)
	}
	for _, e := range r.Evicted {
		if e.BudgetViolated {
			lines = append(lines, e.Alloc+" overran a budget")
		}
	}
	for _, u := range r.Unplaced {
		lines = append(lines, fmt.Sprintf("%s.%s lacks %d: %s", u.Job, u.Group, u.Count, u.Reason))
	}
	return strings.Join(append(lines, "runs "+strings.Join(r.Running, " ")), "\n")
}

// Taints, tolerations, cohorts and budgets restrict placements and evictions.
func TestEvictionGuards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, scenario, want string }{
		{"a taint excludes jobs without a toleration, even if they could evict", `
nodes: [{id: n1, capacity: {cpu: 10}, taints: [{key: gpu, value: "true", effect: NoSchedule}]}]
jobs:
  - {id: old, priority: 10, groups: [{name: g, resources: {cpu: 10}, tolerations: [{key: gpu, operator: Exists}]}]}
  - {id: new, priority: 90, groups: [{name: g, resources: {cpu: 10}, tolerations: [{key: gpu, value: "false"}]}]}
running: [{id: a, job: old, group: g, node: n1, startedAt: -1h}]
events: [{at: 0s, submit: new}]
`, `new.g lacks 1: 0 of 1 node: 1 excluded by taint gpu=true:NoSchedule
runs a`},
		{"tolerations by value, by key and of every taint", `
nodes:
  - {id: n1, capacity: {cpu: 10}, taints: [{key: gpu, value: "true", effect: NoSchedule}]}
  - {id: n2, capacity: {cpu: 10}, taints: [{key: gpu, value: "true", effect: NoSchedule}, {key: old, effect: NoSchedule}]}
jobs:
  - {id: a, priority: 10, groups: [{name: g, resources: {cpu: 6}, tolerations: [{key: gpu, value: "true"}]}]}
  - {id: b, priority: 10, groups: [{name: g, resources: {cpu: 6}, tolerations: [{key: gpu, operator: Exists}, {key: old, operator: Equal}]}]}
  - {id: c, priority: 10, groups: [{name: g, resources: {cpu: 2}, count: 3, tolerations: [{operator: Exists}]}]}
events: [{at: 0s, submit: a}, {at: 0s, submit: b}, {at: 0s, submit: c}]
`, `0s a.g[0]@n1
0s b.g[0]@n2
0s c.g[0]@n1
0s c.g[2]@n1
0s c.g[1]@n2
runs a.g[0] b.g[0] c.g[0] c.g[1] c.g[2]`},
		{"PreferNoSchedule: another node is preferred, but not over an eviction", `
nodes:
  - {id: n1, capacity: {cpu: 10}, taints: [{key: spot, effect: PreferNoSchedule}]}
  - {id: n2, capacity: {cpu: 10}}
jobs:
  - {id: low, priority: 10, groups: [{name: g, resources: {cpu: 8}}]}
  - {id: a, priority: 50, groups: [{name: g, resources: {cpu: 2}, count: 2}]}
  - {id: any, priority: 50, groups: [{name: g, resources: {cpu: 2}, tolerations: [{operator: Exists}]}]}
running: [{id: x, job: low, group: g, node: n2, startedAt: -1h}]
events: [{at: 0s, submit: a}, {at: 1s, submit: any}]
`, `0s a.g[0]@n2
0s a.g[1]@n1
1s any.g[0]@n1
runs a.g[0] a.g[1] any.g[0] x`},
		{"a system job is placed on tolerated nodes, and running instances remain", `
nodes:
  - {id: n1, capacity: {cpu: 10}, taints: [{key: gpu, effect: NoSchedule}]}
  - {id: n2, capacity: {cpu: 10}, taints: [{key: gpu, effect: NoSchedule}]}
  - {id: n3, capacity: {cpu: 10}}
jobs: [{id: s, type: system, priority: 50, groups: [{name: g, resources: {cpu: 1}}]}]
running: [{id: a, job: s, group: g, node: n1}]
events: [{at: 0s, submit: s}]
`, `0s s.g[1]@n3
runs a s.g[1]`},
		{"a toleration protects from preemptors below 90", oneNode + `
jobs:
  - {id: low, priority: 10, toleration: {minPreemptorPriority: 90}, groups: [{name: g, resources: {cpu: 10}}]}
  - {id: mid, priority: 80, groups: [{name: g, resources: {cpu: 10}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 10}}]}
running: [{id: a, job: low, group: g, node: n1, startedAt: -1h}]
events: [{at: 0s, submit: mid}, {at: 5s, submit: top}]
`, `5s top.g[0]@n1 over a
low.g lacks 1: 0 of 1 node: 1 lacks cpu; eviction does not help: on 1 nothing has a priority of 0 or less
mid.g lacks 1: 0 of 1 node: 1 lacks cpu; eviction does not help: on 1 all candidates are protected from preemptors of this priority or have not run for long enough
runs top.g[0]`},
		{"a protection of ten minutes ends at that instant", oneNode + `
jobs:
  - {id: low, priority: 10, toleration: {minRuntime: 10m}, groups: [{name: g, resources: {cpu: 5}, count: 2}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 5}, count: 3}]}
running: [{id: a, job: low, group: g, node: n1, startedAt: -1m}, {id: b, job: low, group: g, node: n1, startedAt: -12m}]
events: [{at: 0s, submit: top}]
until: 1h
`, `0s top.g[0]@n1 over b
9m0s top.g[1]@n1 over a
low.g lacks 2: 0 of 1 node: 1 lacks cpu; eviction does not help: on 1 nothing has a priority of 0 or less
top.g lacks 1: 0 of 1 node: 1 lacks cpu; eviction does not help: on 1 nothing has a priority of 80 or less
runs top.g[0] top.g[1]`},
		{"an allocation that has not started is not protected", `
nodes: [{id: n1, capacity: {cpu: 10}}]
jobs:
  - {id: slow, priority: 10, groups: [{name: g, resources: {cpu: 10}, killTimeout: 1m}]}
  - {id: mid, priority: 50, toleration: {minRuntime: 10m}, groups: [{name: g, resources: {cpu: 10}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 10}}]}
running: [{id: a, job: slow, group: g, node: n1, startedAt: -1h}]
events: [{at: 0s, submit: mid}, {at: 30s, submit: top}]
until: 2m
`, `0s mid.g[0]@n1 over a
30s top.g[0]@n1 over mid.g[0]
slow.g lacks 1: 0 of 1 node: 1 lacks cpu; eviction does not help: on 1 nothing has a priority of 0 or less
mid.g lacks 1: 0 of 1 node: 1 lacks cpu; eviction does not help: on 1 nothing has a priority of 40 or less
runs top.g[0]`},
		{"an all-or-none job is evicted on all nodes, and its capacity is used", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 6}, count: 3}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 2}]}
  - {id: late, priority: 50, groups: [{name: g, resources: {cpu: 10}}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1h}
  - {id: c, job: mpi, group: g, node: n3}
events: [{at: 0s, submit: top}, {at: 1s, submit: late}]
`, `0s top.g[0]@n1 over a, n2: b, n3: c
0s top.g[1]@n2
0s mpi.g[0]#1@n3
1s late.g[0]@n3 over mpi.g[0]#1
mpi.g lacks 3: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
runs late.g[0] top.g[0] top.g[1]`},
		{"an all-or-none job is not evicted if one of its members is protected", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, allAtOnce: true, toleration: {minRuntime: 10m}, groups: [{name: g, resources: {cpu: 10}, count: 2}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -6m}
events: [{at: 0s, submit: top}]
until: 1h
`, `4m0s top.g[0]@n1 over a, n2: b
mpi.g lacks 2: all at once: an attempt placed 1 of 2 instances; for the next one, 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 0 or less
runs top.g[0]`},
		{"when the protected member ends, the others are evictable at once although their nodes did not change", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 2}}]
jobs:
  - id: mpi
    type: batch
    priority: 10
    disruptionMode: all
    toleration: {minRuntime: 10m}
    groups: [{name: g, resources: {cpu: 10}}, {name: lead, resources: {cpu: 2}, duration: 7m}]
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: lead, node: n2, startedAt: -6m}
events: [{at: 0s, submit: top}]
until: 2m
`, `1m0s top.g[0]@n1 over a
mpi.g lacks 1: 0 of 2 nodes: 2 lack cpu; eviction does not help: on 1 nothing has a priority of 0 or less, on 1 nothing runs that could be evicted
runs top.g[0]`},
		{"an additional instance of an elastic job makes one of its members evictable", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 6}}, {id: n3, capacity: {cpu: 6}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, toleration: {minRuntime: 10m}, groups: [{name: g, resources: {cpu: 6}, count: 3, minCount: 2}]}
  - {id: brief, type: batch, priority: 50, groups: [{name: g, resources: {cpu: 6}, duration: 1m}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1m}
  - {id: x, job: brief, group: g, node: n3, startedAt: 0s}
events: [{at: 0s, submit: mpi}, {at: 1s, submit: top}]
until: 2m
`, `1m0s mpi.g[2]@n3
1m0s top.g[0]@n1 over a
mpi.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
runs b mpi.g[2] top.g[0]`},
		{"a system job excluded by an allocation in the zone is placed once that has ended", `
nodes: [{id: n1, capacity: {cpu: 10}, attributes: {zone: a, kind: new}}, {id: n2, capacity: {cpu: 10}, attributes: {zone: a}}]
jobs:
  - {id: noisy, type: batch, priority: 95, groups: [{name: g, resources: {cpu: 1}, labels: {app: noisy}, duration: 2m}]}
  - id: agent
    type: system
    priority: 90
    groups: [{name: g, resources: {cpu: 1}, separate: [{labels: {app: noisy}, topologyKey: zone}], constraints: [{attribute: kind, operator: "=", value: new}]}]
running: [{id: x, job: noisy, group: g, node: n2, startedAt: -1m}]
events: [{at: 0s, submit: agent}]
until: 2m
`, `1m0s agent.g[0]@n1
runs agent.g[0]`},
		{"an elastic job is evicted one by one down to minCount, then completely", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}, {id: n4, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 6}, count: 4, minCount: 2}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 2}]}
  - {id: next, priority: 90, groups: [{name: g, resources: {cpu: 8}}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1h}
  - {id: c, job: mpi, group: g, node: n3, startedAt: -1h}
  - {id: d, job: mpi, group: g, node: n4, startedAt: -1h}
events: [{at: 0s, submit: top}, {at: 1m, submit: next}]
`, `0s top.g[0]@n1 over a
0s top.g[1]@n2 over b
1m0s next.g[0]@n3 over c, n4: d
1m0s mpi.g[0]#1@n4
mpi.g lacks 3: 0 of 4 nodes: 4 lack cpu; eviction does not help: on 4 nothing has a priority of 0 or less
runs mpi.g[0]#1 next.g[0] top.g[0] top.g[1]`},
		{"one plan evicts the surplus and then the rest in one commit", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 6}, count: 3, minCount: 2}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 2}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1h}
  - {id: c, job: mpi, group: g, node: n3, startedAt: -1h}
events: [{at: 0s, submit: top}]
`, `0s top.g[0]@n1 over a
0s top.g[1]@n2 over b, n3: c
0s mpi.g[0]#1@n3
mpi.g lacks 2: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
runs mpi.g[0]#1 top.g[0] top.g[1]`},
		{"two instances of an elastic job are evicted for a job that needs both", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 5}, count: 4, minCount: 2}]}
  - {id: large, priority: 95, groups: [{name: g, resources: {cpu: 6}}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: c, job: mpi, group: g, node: n2, startedAt: -1h}
  - {id: d, job: mpi, group: g, node: n2, startedAt: -1h}
events: [{at: 0s, submit: large}]
`, `0s large.g[0]@n1 over a b
mpi.g lacks 2: 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 0 or less
runs c d large.g[0]`},
		{"an elastic job is scaled down although some members are protected, if enough remain", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, toleration: {minRuntime: 10m}, groups: [{name: g, resources: {cpu: 6}, count: 3, minCount: 2}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 2}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1m}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1h}
  - {id: c, job: mpi, group: g, node: n3, startedAt: -1h}
events: [{at: 0s, submit: top}]
until: 1m
`, `0s top.g[0]@n2 over b
mpi.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
top.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 2 all candidates are protected from preemptors of this priority or have not run for long enough, on 1 nothing has a priority of 80 or less
runs a c top.g[0]`},
		{"a strict budget allows scaling an elastic job down, but not evicting it completely", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 6}, count: 3, minCount: 2, labels: {app: mpi}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 2}]}
budgets: [{name: mpi, labels: {app: mpi}, minAvailable: 2, enforcement: strict}]
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1h}
  - {id: c, job: mpi, group: g, node: n3, startedAt: -1h}
events: [{at: 0s, submit: top}]
`, `0s top.g[0]@n1 over a
mpi.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
top.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 2 the strict disruption budget mpi allows too few evictions, on 1 nothing has a priority of 80 or less
runs b c top.g[0]`},
		{"a system job scales an elastic job down, and evicts the rest if necessary", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 10}, count: 3, minCount: 2}]}
  - {id: top, type: system, priority: 90, groups: [{name: g, resources: {cpu: 8}, constraints: [{attribute: node.id, operator: notin, value: [n3]}]}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1h}
  - {id: c, job: mpi, group: g, node: n3, startedAt: -1h}
events: [{at: 0s, submit: top}]
`, `0s top.g[0]@n1 over a
0s top.g[1]@n2 over b, n3: c
0s mpi.g[0]#1@n3
mpi.g lacks 2: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
runs mpi.g[0]#1 top.g[0] top.g[1]`},
		{"a system job evicts an all-or-none job once", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 10}, count: 2}]}
  - {id: top, type: system, priority: 90, groups: [{name: g, resources: {cpu: 8}}]}
running:
  - {id: a, job: mpi, group: g, node: n1, startedAt: -1h}
  - {id: b, job: mpi, group: g, node: n2, startedAt: -1h}
events: [{at: 0s, submit: top}]
`, `0s top.g[0]@n1 over a, n2: b
0s top.g[1]@n2
mpi.g lacks 2: 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 0 or less
runs top.g[0] top.g[1]`},
		{"a strict budget is never exceeded, and is reported as the reason", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}]
jobs:
  - {id: web, priority: 10, groups: [{name: g, resources: {cpu: 10}, count: 3, labels: {app: web}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 3}]}
budgets: [{name: web-pdb, labels: {app: web}, minAvailable: 50%, enforcement: strict}]
running:
  - {id: a, job: web, group: g, node: n1}
  - {id: b, job: web, group: g, node: n2}
  - {id: c, job: web, group: g, node: n3}
events: [{at: 0s, submit: top}]
`, `0s top.g[0]@n1 over a
web.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
top.g lacks 2: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 2 the strict disruption budget web-pdb allows too few evictions, on 1 nothing has a priority of 80 or less
runs b c top.g[0]`},
		{"allocations on a node that is down are unavailable at once, before their job is evaluated", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 30}}]
jobs:
  - {id: web, priority: 10, groups: [{name: g, resources: {cpu: 10}, count: 3, labels: {app: web}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 10}}]}
budgets: [{name: web-pdb, labels: {app: web}, maxUnavailable: 1, enforcement: strict}]
running:
  - {id: a, job: web, group: g, node: n1}
  - {id: b, job: web, group: g, node: n2}
  - {id: c, job: web, group: g, node: n2}
  - {id: t, job: top, group: g, node: n2}
events: [{at: 5s, nodeDown: n2}]
`, `web.g lacks 2: 0 of 2 nodes: 1 lacks cpu, 1 is down; eviction does not help: on 1 nothing has a priority of 0 or less
top.g lacks 1: 0 of 2 nodes: 1 lacks cpu, 1 is down; eviction does not help: on 1 the strict disruption budget web-pdb allows too few evictions
runs a`},
		{"a member of an all-or-none job that is lost with its node is not evicted", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 20}}]
jobs:
  - {id: mpi, priority: 10, disruptionMode: all, groups: [{name: g, resources: {cpu: 10}, count: 2}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 10}}]}
running:
  - {id: a, job: mpi, group: g, node: n1}
  - {id: b, job: mpi, group: g, node: n2}
  - {id: t, job: top, group: g, node: n2}
events: [{at: 5s, nodeDown: n2}]
`, `5s top.g[0]#1@n1 over a
mpi.g lacks 2: 0 of 2 nodes: 1 lacks cpu, 1 is down; eviction does not help: on 1 nothing has a priority of 0 or less
runs top.g[0]#1`},
		{"an allocation that is lost with its node is not evicted for the sake of its zone", `
nodes:
  - {id: a1, capacity: {cpu: 10}, attributes: {zone: a}}
  - {id: a2, capacity: {cpu: 20}, attributes: {zone: a}}
jobs:
  - {id: noisy, priority: 10, groups: [{name: g, resources: {cpu: 12}, labels: {app: noisy}}]}
  - {id: quiet, priority: 90, groups: [{name: g, resources: {cpu: 10}, separate: [{labels: {app: noisy}, topologyKey: zone}]}]}
running: [{id: x, job: noisy, group: g, node: a2}]
events: [{at: 5s, nodeDown: a2}, {at: 5s, submit: quiet}]
`, `5s quiet.g[0]@a1
noisy.g lacks 1: 0 of 2 nodes: 1 lacks cpu, 1 is down; eviction does not help: on 1 nothing has a priority of 0 or less
runs quiet.g[0]`},
		{"a best-effort budget is exceeded if necessary, and the violation is reported", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: web, priority: 10, groups: [{name: g, resources: {cpu: 10}, count: 2, labels: {app: web}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 2}]}
budgets: [{name: web-pdb, labels: {app: web}, maxUnavailable: 1}]
running:
  - {id: a, job: web, group: g, node: n1}
  - {id: b, job: web, group: g, node: n2}
events: [{at: 0s, submit: top}]
`, `0s top.g[0]@n1 over a
0s top.g[1]@n2 over b
b overran a budget
web.g lacks 2: 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 0 or less
runs top.g[0] top.g[1]`},
		{"kubernetes avoids a budget violation that default accepts", `
scheduler: {policy: kubernetes}
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: web, priority: 10, groups: [{name: g, resources: {cpu: 10}, labels: {app: web}}]}
  - {id: api, priority: 40, preemptionPolicy: Never, groups: [{name: g, resources: {cpu: 10}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}}]}
budgets: [{name: web-pdb, labels: {app: web}, minAvailable: 1}]
running:
  - {id: a, job: web, group: g, node: n1}
  - {id: b, job: api, group: g, node: n2}
events: [{at: 0s, submit: top}]
`, `0s top.g[0]@n2 over b
api.g lacks 1: 0 of 2 nodes: 2 lack cpu; no preemption: the job's preemptionPolicy is Never
runs a top.g[0]`},
		{"a job blocked by a strict budget is evaluated when the budget allows a disruption", `
nodes:
  - {id: n1, capacity: {cpu: 10}}
  - {id: n2, capacity: {cpu: 10}}
  - {id: n3, capacity: {cpu: 10}, taints: [{key: web, effect: NoSchedule}]}
jobs:
  - {id: web, priority: 10, groups: [{name: g, resources: {cpu: 10}, count: 2, labels: {app: web}, tolerations: [{key: web}]}]}
  - {id: batch, type: batch, priority: 95, groups: [{name: g, resources: {cpu: 10}, duration: 10m, tolerations: [{key: web}]}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 8}, count: 2}]}
budgets: [{name: web-pdb, labels: {app: web}, minAvailable: 1, enforcement: strict}]
running:
  - {id: a, job: web, group: g, node: n1}
  - {id: b, job: web, group: g, node: n2}
  - {id: c, job: batch, group: g, node: n3}
events: [{at: 0s, submit: top}]
until: 1h
`, `0s top.g[0]@n1 over a
10m0s web.g[0]#1@n3
10m0s top.g[1]@n2 over b
web.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
runs top.g[0] top.g[1] web.g[0]#1`},
		{"an allocation with anti-affinity for the zone is evicted on another node", `
nodes:
  - {id: a1, capacity: {cpu: 10}, attributes: {zone: a}}
  - {id: a2, capacity: {cpu: 10}, attributes: {zone: a}}
  - {id: b1, capacity: {cpu: 10}, attributes: {zone: b}}
jobs:
  - {id: noisy, priority: 10, groups: [{name: g, resources: {cpu: 2}, count: 2, labels: {app: noisy}}]}
  - {id: wall, priority: 95, groups: [{name: g, resources: {cpu: 10}}]}
  - {id: quiet, priority: 90, groups: [{name: g, resources: {cpu: 2}, separate: [{labels: {app: noisy}, topologyKey: zone}]}]}
running:
  - {id: x, job: noisy, group: g, node: a2}
  - {id: w, job: wall, group: g, node: b1}
events: [{at: 0s, submit: quiet}]
`, `0s quiet.g[0]@a1, a2: x
noisy.g lacks 2: 0 of 3 nodes: 1 lacks cpu, 1 lacks separation from other allocations, 1 excluded by separate from allocations that exclude it by zone; eviction does not help: on 2 nothing has a priority of 0 or less
runs quiet.g[0] w`},
		{"victims on the node and on others in one plan, with their cohorts", `
nodes:
  - {id: a1, capacity: {cpu: 10}, attributes: {zone: a}}
  - {id: a2, capacity: {cpu: 10}, attributes: {zone: a}}
  - {id: b1, capacity: {cpu: 10}, attributes: {zone: b}}
jobs:
  - {id: low, priority: 20, groups: [{name: g, resources: {cpu: 9}}]}
  - {id: noisy, priority: 10, disruptionMode: all, allAtOnce: true, groups: [{name: g, resources: {cpu: 9}, count: 2, labels: {app: noisy}}]}
  - {id: quiet, priority: 90, groups: [{name: g, resources: {cpu: 2}, separate: [{labels: {app: noisy}, topologyKey: zone}], constraints: [{attribute: zone, operator: "=", value: a}]}]}
running:
  - {id: l, job: low, group: g, node: a1}
  - {id: x, job: noisy, group: g, node: a2}
  - {id: y, job: noisy, group: g, node: b1}
events: [{at: 0s, submit: quiet}]
`, `0s quiet.g[0]@a2 over x, b1: y
noisy.g lacks 2: all at once: an attempt placed 1 of 2 instances; for the next one, 0 of 3 nodes: 2 lack cpu, 1 excluded by separate from allocations that exclude it by zone; eviction does not help: on 2 nothing has a priority of 0 or less
runs l quiet.g[0]`},
		{"a protected allocation on another node is not evicted", `
nodes:
  - {id: a1, capacity: {cpu: 10}, attributes: {zone: a}}
  - {id: a2, capacity: {cpu: 10}, attributes: {zone: a}}
jobs:
  - {id: noisy, priority: 10, groups: [{name: g, resources: {cpu: 2}, labels: {app: noisy}}]}
  - {id: loud, priority: 85, groups: [{name: g, resources: {cpu: 2}, labels: {app: noisy}}]}
  - {id: quiet, priority: 90, groups: [{name: g, resources: {cpu: 2}, separate: [{labels: {app: noisy}, topologyKey: zone}]}]}
running:
  - {id: x, job: noisy, group: g, node: a2}
  - {id: y, job: loud, group: g, node: a1}
events: [{at: 0s, submit: quiet}]
`, `quiet.g lacks 1: 0 of 2 nodes: 2 excluded by separate from app=noisy by zone
runs x y`},
		{"a strict budget also applies to victims on other nodes", `
nodes:
  - {id: a1, capacity: {cpu: 10}, attributes: {zone: a}}
  - {id: a2, capacity: {cpu: 10}, attributes: {zone: a}}
jobs:
  - {id: noisy, priority: 10, groups: [{name: g, resources: {cpu: 2}, count: 2, labels: {app: noisy}}]}
  - {id: quiet, priority: 90, groups: [{name: g, resources: {cpu: 2}, separate: [{labels: {app: noisy}, topologyKey: zone}]}]}
budgets: [{name: one, labels: {app: noisy}, maxUnavailable: 1, enforcement: strict}]
running:
  - {id: x, job: noisy, group: g, node: a1}
  - {id: y, job: noisy, group: g, node: a2}
events: [{at: 0s, submit: quiet}]
`, `quiet.g lacks 1: 0 of 2 nodes: 2 excluded by separate from app=noisy by zone; eviction does not help: on 2 the strict disruption budget one allows too few evictions
runs x y`},
		{"one eviction per ten minutes in the whole namespace", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}, {id: n3, capacity: {cpu: 10}}]
jobs:
  - {id: low, priority: 10, groups: [{name: g, resources: {cpu: 10}, count: 3}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 10}, count: 3}]}
budgets: [{name: slowly, maxEvictions: 1, window: 10m}]
running:
  - {id: a, job: low, group: g, node: n1}
  - {id: b, job: low, group: g, node: n2}
  - {id: c, job: low, group: g, node: n3}
events: [{at: 5s, submit: top}]
until: 15m
`, `5s top.g[0]@n1 over a
10m5s top.g[1]@n2 over b
low.g lacks 2: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 3 nothing has a priority of 0 or less
top.g lacks 1: 0 of 3 nodes: 3 lack cpu; eviction does not help: on 2 nothing has a priority of 80 or less, on 1 the strict disruption budget slowly allows at most 1 eviction in 10m0s, and too few are left
runs c top.g[0] top.g[1]`},
		{"a best-effort rate is counted and exceeded", `
nodes: [{id: n1, capacity: {cpu: 10}}, {id: n2, capacity: {cpu: 10}}]
jobs:
  - {id: low, priority: 10, groups: [{name: g, resources: {cpu: 10}, count: 2, labels: {app: low}}]}
  - {id: top, priority: 90, groups: [{name: g, resources: {cpu: 10}, count: 2}]}
budgets: [{name: slowly, labels: {app: low}, maxEvictions: 1, window: 10m, enforcement: bestEffort}]
running: [{id: a, job: low, group: g, node: n1}, {id: b, job: low, group: g, node: n2}]
events: [{at: 5s, submit: top}]
`, `5s top.g[0]@n1 over a
5s top.g[1]@n2 over b
b overran a budget
low.g lacks 2: 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 0 or less
runs top.g[0] top.g[1]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := play(t, decode(t, c.scenario), sim.Options{})
			if got := detailedTranscript(run.Result); got != c.want {
				t.Errorf("got\n%s\n\nwant\n%s", got, c.want)
			}
		})
	}
}
