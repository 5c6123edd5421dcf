package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
)

// bindingTranscript formats the placements and evictions of bindings, one per line.
func bindingTranscript(r *sim.Result) string {
	var b strings.Builder
	for _, x := range r.Bindings {
		fmt.Fprintf(&b, "%s %s on %v for %v\n", x.At, x.Binding, x.Clusters, x.Preempted)
	}
	for _, x := range r.Evicted {
		fmt.Fprintf(&b, "%s %s loses %d on %s to %s\n", x.At, x.Binding, x.Replicas, x.Cluster, x.By)
	}
	for _, x := range r.Unplaced {
		fmt.Fprintf(&b, "unplaced %s %d: %s\n", x.Binding, x.Count, x.Reason)
	}
	fmt.Fprintf(&b, "running %v\n", r.Running)
	return b.String()
}

func TestBindings_Transcripts(t *testing.T) {
	t.Parallel()
	const head = "scheduler: {policy: karmada}\n"
	for name, c := range map[string]struct{ text, want string }{
		"replicas are divided by free capacity": {`
clusters: [{id: m1, capacity: {cpu: 6000}}, {id: m2, capacity: {cpu: 2000}}, {id: m3, capacity: {cpu: 500}}]
bindings: [{id: a, replicas: 4, resources: {cpu: 1000}}]
events: [{at: 0s, submit: a}]
`, `
0s a on map[m1:3 m2:1] for []
running [a]
`},
		"replicas are divided by weights; the remainder is assigned to other clusters": {`
clusters: [{id: m1, capacity: {cpu: 9000}}, {id: m2, capacity: {cpu: 1000}}]
bindings: [{id: a, replicas: 6, resources: {cpu: 1000}, weights: {m1: 1, m2: 2}}]
events: [{at: 0s, submit: a}]
`, `
0s a on map[m1:5 m2:1] for []
running [a]
`},
		"minClusters and maxClusters are respected": {`
clusters: [{id: m1, capacity: {cpu: 6000}}, {id: m2, capacity: {cpu: 2000}}, {id: m3, capacity: {cpu: 1000}}]
bindings: [{id: a, replicas: 3, resources: {cpu: 1000}, spread: {minClusters: 3}}, {id: b, replicas: 3, resources: {cpu: 1000}, spread: {maxClusters: 1}}]
events: [{at: 0s, submit: a}, {at: 1s, submit: b}]
`, `
0s a on map[m1:1 m2:1 m3:1] for []
1s b on map[m1:3] for []
running [a b]
`},
		// If only the occupied cluster were claimed, the victim would move to the
		// free one, and be evicted from there, endlessly.
		"one eviction suffices for a binding that needs two clusters if one is free": {`
clusters: [{id: m1, capacity: {cpu: 4000}}, {id: m2, capacity: {cpu: 4000}}]
bindings:
- {id: low, priority: 1, replicas: 1, resources: {cpu: 4000}, killTimeout: 10s}
- {id: mid, priority: 5, replicas: 1, resources: {cpu: 1000}}
- {id: high, priority: 10, preemptionPolicy: PreemptLowerPriority, replicas: 2, resources: {cpu: 2000}, replicaScheduling: duplicated, spread: {minClusters: 2}}
running: [{id: low, binding: low, clusters: {m2: 1}, startedAt: -1h}]
events: [{at: 0s, submit: high}, {at: 5s, submit: mid}]
`, `
0s high on map[m2:2] for [low]
0s high on map[m1:2] for []
0s low loses 1 on m2 to high
unplaced low 1: 0 of 2 clusters: 2 lack cpu; no preemption: the binding's preemptionPolicy is Never
unplaced mid 1: 0 of 2 clusters: 2 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [high]
`},
		"no eviction for a binding that would need evictions on two clusters": {`
clusters: [{id: m1, capacity: {cpu: 4000}}, {id: m2, capacity: {cpu: 4000}}]
bindings:
- {id: low, priority: 1, replicas: 2, resources: {cpu: 4000}}
- {id: high, priority: 10, preemptionPolicy: PreemptLowerPriority, replicas: 2, resources: {cpu: 2000}, replicaScheduling: duplicated, spread: {minClusters: 2}}
running: [{id: low, binding: low, clusters: {m1: 1, m2: 1}, startedAt: -1h}]
events: [{at: 0s, submit: high}]
`, `
unplaced high 4: 0 of 2 clusters: 2 lack cpu; no preemption: the replicas need capacity on several clusters, and preemption frees capacity on one cluster only
running [low]
`},
		// By free capacity alone the replicas would be divided, and two of the
		// victims would have been evicted unnecessarily.
		"a preemptor uses the capacity of its victims even if other capacity becomes free": {`
clusters: [{id: m1, capacity: {cpu: 4000}}, {id: m2, capacity: {cpu: 3000}}]
bindings:
- {id: low, priority: 1, replicas: 1, resources: {cpu: 4000}, killTimeout: 30s}
- {id: other, priority: 9, replicas: 3, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 4, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: low, binding: low, clusters: {m1: 1}, startedAt: -1h}, {id: other, binding: other, clusters: {m2: 3}}]
events: [{at: 0s, submit: high}, {at: 10s, stop: other}]
until: 1m
`, `
0s high on map[m1:4] for [low]
0s low loses 1 on m1 to high
unplaced low 1: 0 of 2 clusters: 2 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [high]
`},
		"a preemptor that waits for victims moves to a cluster that fits all of its replicas": {`
clusters: [{id: m1, capacity: {cpu: 4000}}, {id: m2, capacity: {cpu: 4000}}]
bindings:
- {id: low, priority: 1, replicas: 1, resources: {cpu: 4000}, killTimeout: 30s}
- {id: other, priority: 9, replicas: 4, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 4, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: low, binding: low, clusters: {m1: 1}, startedAt: -1h}, {id: other, binding: other, clusters: {m2: 4}}]
events: [{at: 0s, submit: high}, {at: 10s, stop: other}]
until: 1m
`, `
0s high on map[m1:4] for [low]
10s high on map[m2:4] for []
30s low on map[m1:1] for []
0s low loses 1 on m1 to high
running [high low]
`},
		"replicas are spread over the minimum number of regions": {`
clusters:
- {id: a1, capacity: {cpu: 9000}, attributes: {region: a}}
- {id: a2, capacity: {cpu: 8000}, attributes: {region: a}}
- {id: b1, capacity: {cpu: 1000}, attributes: {region: b}}
- {id: c1, capacity: {cpu: 2000}, attributes: {region: c}}
- {id: none, capacity: {cpu: 9000}}
bindings: [{id: x, replicas: 4, resources: {cpu: 1000}, spread: {by: region, minGroups: 3, maxClusters: 3}}]
events: [{at: 0s, submit: x}]
`, `
0s x on map[a1:2 b1:1 c1:1] for []
running [x]
`},
		"if there are more regions than allowed, those with free capacity are used": {`
clusters:
- {id: a1, capacity: {cpu: 5000}, attributes: {region: a}}
- {id: b1, capacity: {cpu: 3000}, attributes: {region: b}}
- {id: b2, capacity: {cpu: 3000}, attributes: {region: b}}
bindings:
- {id: x, replicas: 6, resources: {cpu: 1000}, spread: {by: region, maxGroups: 1}}
- {id: y, replicas: 2, resources: {cpu: 3000}, spread: {by: region, minGroups: 2}}
events: [{at: 0s, submit: x}, {at: 1s, submit: y}]
`, `
0s x on map[b1:3 b2:3] for []
unplaced y 2: 0 of 3 clusters: 3 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [x]
`},
		"a missing region is reported although there is free capacity": {`
clusters:
- {id: a1, capacity: {cpu: 5000}, attributes: {region: a}}
- {id: a2, capacity: {cpu: 5000}, attributes: {region: a}}
- {id: none, capacity: {cpu: 5000}}
bindings: [{id: x, replicas: 2, resources: {cpu: 1000}, spread: {by: region, minGroups: 2}}]
events: [{at: 0s, submit: x}]
`, `
unplaced x 2: 0 of 3 clusters: 2 excluded by spread constraint: at least 2 of region, 1 excluded by missing attribute region to spread over
running []
`},
		"a duplicated binding stays in its regions and preempts in one of them": {`
clusters:
- {id: a1, capacity: {cpu: 2000}, attributes: {region: a}}
- {id: a2, capacity: {cpu: 2000}, attributes: {region: a}}
- {id: b1, capacity: {cpu: 2000}, attributes: {region: b}}
- {id: c1, capacity: {cpu: 2000}, attributes: {region: c}}
bindings:
- {id: low, priority: 1, replicas: 1, resources: {cpu: 2000}, killTimeout: 10s}
- {id: same, priority: 9, replicas: 1, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 2, resources: {cpu: 1000}, replicaScheduling: duplicated, preemptionPolicy: PreemptLowerPriority, spread: {by: region, minGroups: 2, maxGroups: 2}}
running: [{id: l, binding: low, clusters: {b1: 1}, startedAt: -1h}, {id: s, binding: same, clusters: {c1: 1}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
0s high on map[b1:2] for [l]
0s high on map[a1:2] for []
0s high on map[a2:2] for []
0s low loses 1 on b1 to high
unplaced low 1: 0 of 4 clusters: 4 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [high s]
`},
		"evictions in several regions if the policy allows them": {`
policies: [{name: wide, use: karmada, config: {multiCluster: true}}]
scheduler: {policy: wide}
clusters:
- {id: a1, capacity: {cpu: 2000}, attributes: {region: a}}
- {id: a2, capacity: {cpu: 2000}, attributes: {region: a}}
- {id: b1, capacity: {cpu: 2000}, attributes: {region: b}}
bindings:
- {id: x, priority: 1, resources: {cpu: 2000}}
- {id: y, priority: 2, resources: {cpu: 2000}}
- {id: z, priority: 3, resources: {cpu: 2000}}
- {id: high, priority: 9, replicas: 2, resources: {cpu: 2000}, preemptionPolicy: PreemptLowerPriority, spread: {by: region, minGroups: 2}}
running: [{id: x, binding: x, clusters: {a1: 1}}, {id: y, binding: y, clusters: {a2: 1}}, {id: z, binding: z, clusters: {b1: 1}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
0s high on map[a1:1] for [x]
0s high on map[b1:1] for [z]
0s x loses 1 on a1 to high
0s z loses 1 on b1 to high
unplaced x 1: 0 of 3 clusters: 3 lack cpu; no preemption: the binding's preemptionPolicy is Never
unplaced z 1: 0 of 3 clusters: 3 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [high y]
`},
		"no evictions for regions while a feature gate is off": {`
scheduler: {policy: karmada, featureGates: {PriorityBasedPreemptiveScheduling: false}}
clusters:
- {id: a1, capacity: {cpu: 2000}, attributes: {region: a}}
- {id: b1, capacity: {cpu: 2000}, attributes: {region: b}}
bindings:
- {id: low, priority: 1, resources: {cpu: 2000}}
- {id: high, priority: 9, replicas: 1, resources: {cpu: 2000}, replicaScheduling: duplicated, preemptionPolicy: PreemptLowerPriority, spread: {by: region, minGroups: 2}}
running: [{id: l, binding: low, clusters: {b1: 1}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
unplaced high 2: 0 of 2 clusters: 1 lacks cpu, 1 excluded by spread constraint: at least 2 of region; no preemption: the feature gates PriorityBasedScheduling and PriorityBasedPreemptiveScheduling are not both on
running [l]
`},
		"a duplicated binding is assigned to every eligible cluster": {`
clusters:
- {id: m1, capacity: {cpu: 6000}, attributes: {region: eu}}
- {id: m2, capacity: {cpu: 2000}, attributes: {region: eu}}
- {id: m3, capacity: {cpu: 9000}, attributes: {region: us}}
bindings: [{id: a, replicas: 3, resources: {cpu: 1000}, replicaScheduling: duplicated, constraints: [{attribute: region, operator: "=", value: eu}]}]
events: [{at: 0s, submit: a}]
`, `
0s a on map[m1:3] for []
unplaced a 3: 0 of 3 clusters: 1 lacks cpu, 1 excluded by region = eu; no preemption: the binding's preemptionPolicy is Never
running [a]
`},
		"a victim uses its kill timeout, and its capacity is reserved": {`
clusters: [{id: m1, capacity: {cpu: 4000}}]
bindings:
- {id: low, priority: 1, replicas: 4, resources: {cpu: 1000}, killTimeout: 30s}
- {id: mid, priority: 5, replicas: 4, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 2, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, duration: 1m}
running: [{id: l, binding: low, clusters: {m1: 4}, startedAt: -1h}]
events: [{at: 0s, submit: high}, {at: 10s, submit: mid}]
until: 80s
`, `
0s high on map[m1:2] for [l]
0s low loses 4 on m1 to high
unplaced low 4: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
unplaced mid 4: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [high]
`},
		"a completed binding frees capacity for the highest priority first": {`
clusters: [{id: m1, capacity: {cpu: 4000}}]
bindings:
- {id: low, priority: 1, replicas: 4, resources: {cpu: 1000}}
- {id: mid, priority: 5, replicas: 4, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 2, resources: {cpu: 1000}, duration: 1m}
events: [{at: 0s, submit: high}, {at: 10s, submit: low}, {at: 10s, submit: mid}]
until: 80s
`, `
0s high on map[m1:2] for []
1m0s mid on map[m1:4] for []
unplaced low 4: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [mid]
`},
		"a victim retains its replicas on other clusters, and the rest is assigned again": {`
clusters: [{id: m1, capacity: {cpu: 2000}}, {id: m2, capacity: {cpu: 2000}}, {id: m3, capacity: {cpu: 1000}}]
bindings:
- {id: low, priority: 1, replicas: 3, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 1, resources: {cpu: 2000}, preemptionPolicy: PreemptLowerPriority, clusters: [m2]}
running: [{id: l, binding: low, clusters: {m1: 2, m2: 1}, startedAt: -1h}]
events: [{at: 0s, submit: high}]
`, `
0s high on map[m2:1] for [l]
0s low on map[m3:1] for []
0s low loses 1 on m2 to high
running [high l low]
`},
		"of two bindings that need the same capacity the first is assigned": {`
clusters: [{id: m1, capacity: {cpu: 4000}}]
bindings:
- {id: low, priority: 1, replicas: 1, resources: {cpu: 4000}, killTimeout: 10s}
- {id: a, priority: 9, replicas: 1, resources: {cpu: 4000}, preemptionPolicy: PreemptLowerPriority}
- {id: b, priority: 9, replicas: 1, resources: {cpu: 4000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: l, binding: low, clusters: {m1: 1}, startedAt: -1h}]
events: [{at: 0s, submit: a}, {at: 0s, submit: b}]
until: 1m
`, `
0s a on map[m1:1] for [l]
0s low loses 1 on m1 to a
unplaced b 1: 0 of 1 cluster: 1 lacks cpu; eviction does not help: on 1 nothing has a priority of 8 or less
unplaced low 1: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [a]
`},
		"a cascade of evictions ends": {`
clusters: [{id: m1, capacity: {cpu: 1000}}, {id: m2, capacity: {cpu: 1000}}, {id: m3, capacity: {cpu: 1000}}]
bindings:
- {id: p0, priority: 0, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, clusters: [m3]}
- {id: p1, priority: 1, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, clusters: [m2, m3]}
- {id: p2, priority: 2, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, clusters: [m1, m2]}
- {id: p3, priority: 3, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, clusters: [m1]}
running: [{id: r2, binding: p2, clusters: {m1: 1}}, {id: r1, binding: p1, clusters: {m2: 1}}, {id: r0, binding: p0, clusters: {m3: 1}}]
events: [{at: 0s, submit: p3}]
until: 1m
`, `
0s p3 on map[m1:1] for [r2]
0s p2 on map[m2:1] for [r1]
0s p1 on map[m3:1] for [r0]
0s p2 loses 1 on m1 to p3
0s p1 loses 1 on m2 to p2
0s p0 loses 1 on m3 to p1
unplaced p0 1: 0 of 3 clusters: 1 lacks cpu, 2 excluded by the clusters that the binding allows; eviction does not help: on 1 nothing has a priority of -1 or less
running [p1 p2 p3]
`},
		"bindings that are not preemptible and bindings that never preempt": {`
clusters: [{id: m1, capacity: {cpu: 1000}}]
priorityClasses: [{name: gold, value: 1000}, {name: a, value: 50, globalDefault: true}, {name: b, value: 20, globalDefault: true, preemptionPolicy: Never}]
bindings:
- {id: global, scope: cluster, priority: 1, resources: {cpu: 1000}}
- {id: high, priorityClass: gold, resources: {cpu: 1000}}
- {id: plain, resources: {cpu: 1000}}
running: [{id: g, binding: global, clusters: {m1: 1}}]
events: [{at: 0s, submit: high}, {at: 0s, submit: plain}]
until: 1m
`, `
unplaced high 1: 0 of 1 cluster: 1 lacks cpu; eviction does not help: on 1 nothing has a priority of 999 or less
unplaced plain 1: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [g]
`},
		"no evictions on several clusters at once by default": {`
clusters: [{id: m1, capacity: {cpu: 1000}}, {id: m2, capacity: {cpu: 1000}}]
bindings:
- {id: low, priority: 1, replicas: 2, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 2, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, spread: {minClusters: 2}}
running: [{id: l, binding: low, clusters: {m1: 1, m2: 1}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
unplaced high 2: 0 of 2 clusters: 2 lack cpu; no preemption: the replicas need capacity on several clusters, and preemption frees capacity on one cluster only; set karmada's multiCluster to preempt on several
running [l]
`},
		"preemption can be disabled for bindings": {`
scheduler: {policy: karmada, preemption: {binding: false}}
clusters: [{id: m1, capacity: {cpu: 1000}}]
bindings: [{id: low, priority: 1, resources: {cpu: 1000}}, {id: high, priority: 9, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}]
running: [{id: l, binding: low, clusters: {m1: 1}}]
events: [{at: 0s, submit: high}, {at: 5s, stop: low}]
until: 1m
`, `
5s high on map[m1:1] for []
running [high]
`},
		"no preemption while a feature gate is off": {`
scheduler: {policy: karmada, featureGates: {PriorityBasedPreemptiveScheduling: false}}
clusters: [{id: m1, capacity: {cpu: 1000}}]
bindings: [{id: low, priority: 1, resources: {cpu: 1000}}, {id: high, priority: 9, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}]
running: [{id: l, binding: low, clusters: {m1: 1}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
unplaced high 1: 0 of 1 cluster: 1 lacks cpu; no preemption: the feature gates PriorityBasedScheduling and PriorityBasedPreemptiveScheduling are not both on
running [l]
`},
		"without priorities bindings are assigned in order of submission and never preempt": {`
scheduler: {policy: karmada, featureGates: {PriorityBasedScheduling: false}}
clusters: [{id: m1, capacity: {cpu: 1000}}]
bindings: [{id: low, priority: 1, resources: {cpu: 1000}}, {id: high, priority: 9, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}]
events: [{at: 0s, submit: low}, {at: 0s, submit: high}]
until: 1m
`, `
0s low on map[m1:1] for []
unplaced high 1: 0 of 1 cluster: 1 lacks cpu; no preemption: the feature gates PriorityBasedScheduling and PriorityBasedPreemptiveScheduling are not both on
running [low]
`},
		"an elastic binding is evicted completely by default": {`
clusters: [{id: m1, capacity: {cpu: 6000}}]
bindings:
- {id: low, priority: 1, replicas: 6, minReplicas: 2, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 3, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: l, binding: low, clusters: {m1: 6}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
0s high on map[m1:3] for [l]
0s low loses 6 on m1 to high
unplaced low 6: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [high]
`},
		"an elastic binding is scaled down as far as needed, and scaled up again": {`
policies: [{name: gentle, use: karmada, config: {elastic: true}}]
scheduler: {policy: gentle}
clusters: [{id: m1, capacity: {cpu: 6000}}]
bindings:
- {id: low, priority: 1, replicas: 6, minReplicas: 2, resources: {cpu: 1000}, killTimeout: 10s, checkpoint: 7m}
- {id: high, priority: 9, replicas: 3, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, duration: 5m}
running: [{id: l, binding: low, clusters: {m1: 6}, startedAt: -8m}]
events: [{at: 0s, submit: high}]
until: 1h
`, `
0s high on map[m1:3] for [l]
5m10s low on map[m1:3] for []
0s low loses 3 on m1 to high
running [l]
`},
		"evictions on several clusters if the policy allows them": {`
policies: [{name: wide, use: karmada, config: {multiCluster: true}}]
scheduler: {policy: wide}
clusters: [{id: m1, capacity: {cpu: 3000}}, {id: m2, capacity: {cpu: 3000}}, {id: m3, capacity: {cpu: 1000}}]
bindings:
- {id: x, priority: 1, resources: {cpu: 2000}, killTimeout: 10s}
- {id: y, priority: 2, resources: {cpu: 2000}, killTimeout: 20s}
- {id: z, priority: 3, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 2, resources: {cpu: 2000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: x, binding: x, clusters: {m1: 1}}, {id: y, binding: y, clusters: {m2: 1}}, {id: z, binding: z, clusters: {m3: 1}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
0s high on map[m1:1] for [x]
0s high on map[m2:1] for [y]
0s x loses 1 on m1 to high
0s y loses 1 on m2 to high
unplaced x 1: 0 of 3 clusters: 3 lack cpu; no preemption: the binding's preemptionPolicy is Never
unplaced y 1: 0 of 3 clusters: 3 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [high z]
`},
		"no eviction if the freed capacity of two clusters does not fit a replica": {`
policies: [{name: wide, use: karmada, config: {multiCluster: true}}]
scheduler: {policy: wide}
clusters: [{id: m1, capacity: {cpu: 1000}}, {id: m2, capacity: {cpu: 1000}}]
bindings:
- {id: x, priority: 1, resources: {cpu: 1000}}
- {id: y, priority: 2, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 1, resources: {cpu: 2000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: x, binding: x, clusters: {m1: 1}}, {id: y, binding: y, clusters: {m2: 1}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
unplaced high 1: 0 of 2 clusters: 2 lack cpu; eviction does not help: on 2 too little would be free after all possible evictions
running [x y]
`},
		"replicas above the minimum are evicted before others, lowest priority first": {`
policies: [{name: gentle, use: karmada, config: {elastic: true}}]
scheduler: {policy: gentle}
clusters: [{id: m1, capacity: {cpu: 9000}}]
bindings:
- {id: low, priority: 1, replicas: 4, minReplicas: 3, resources: {cpu: 1000}}
- {id: mid, priority: 2, replicas: 5, minReplicas: 1, resources: {cpu: 1000}}
- {id: high, priority: 9, replicas: 5, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: l, binding: low, clusters: {m1: 4}}, {id: m, binding: mid, clusters: {m1: 5}}]
events: [{at: 0s, submit: high}]
until: 1m
`, `
0s high on map[m1:5] for [l m]
0s low loses 4 on m1 to high
0s mid loses 1 on m1 to high
unplaced low 4: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
unplaced mid 1: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [high m]
`},
		"a binding with its minimum on other clusters is scaled down as far as needed": {`
policies: [{name: gentle, use: karmada, config: {elastic: true}}]
scheduler: {policy: gentle}
clusters: [{id: m, capacity: {cpu: 3000}}, {id: n, capacity: {cpu: 3000}}]
bindings:
- {id: a, priority: 1, replicas: 6, minReplicas: 3, resources: {cpu: 1000}}
- {id: z, priority: 5, replicas: 1, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: a, binding: a, clusters: {m: 3, n: 3}}]
events: [{at: 0s, submit: z}]
until: 1m
`, `
0s z on map[m:1] for [a]
0s a loses 1 on m to z
unplaced a 1: 0 of 2 clusters: 2 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [a z]
`},
		"replicas above the minimum are redistributed over the remaining clusters": {`
policies: [{name: both, use: karmada, config: {elastic: true, multiCluster: true}}]
scheduler: {policy: both}
clusters: [{id: m, capacity: {cpu: 3000}}, {id: n, capacity: {cpu: 3000}}]
bindings:
- {id: a, priority: 1, replicas: 6, minReplicas: 4, resources: {cpu: 1000}}
- {id: z, priority: 5, replicas: 2, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, spread: {minClusters: 2}}
running: [{id: a, binding: a, clusters: {m: 3, n: 3}}]
events: [{at: 0s, submit: z}]
until: 1m
`, `
0s z on map[m:1] for [a]
0s z on map[n:1] for [a]
0s a loses 1 on m to z
0s a loses 1 on n to z
unplaced a 2: 0 of 2 clusters: 2 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [a z]
`},
		"of equal priorities two bindings are scaled down before one is evicted": {`
policies: [{name: gentle, use: karmada, config: {elastic: true}}]
scheduler: {policy: gentle}
clusters: [{id: m, capacity: {cpu: 4000}}]
bindings:
- {id: a, priority: 1, replicas: 2, minReplicas: 1, resources: {cpu: 1000}}
- {id: b, priority: 1, replicas: 2, minReplicas: 1, resources: {cpu: 1000}}
- {id: z, priority: 5, replicas: 2, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority}
running: [{id: a, binding: a, clusters: {m: 2}, startedAt: -2h}, {id: b, binding: b, clusters: {m: 2}, startedAt: -1h}]
events: [{at: 0s, submit: z}]
until: 1m
`, `
0s z on map[m:2] for [a b]
0s b loses 1 on m to z
0s a loses 1 on m to z
unplaced a 1: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
unplaced b 1: 0 of 1 cluster: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [a b z]
`},
		"a duplicated binding is scaled down on one cluster, and scaled up there again": {`
policies: [{name: gentle, use: karmada, config: {elastic: true}}]
scheduler: {policy: gentle}
clusters: [{id: m, capacity: {cpu: 3000}}, {id: n, capacity: {cpu: 3000}}]
bindings:
- {id: a, priority: 1, replicas: 3, minReplicas: 1, resources: {cpu: 1000}, replicaScheduling: duplicated}
- {id: z, priority: 5, replicas: 2, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, clusters: [n], duration: 10s}
- {id: y, priority: 5, replicas: 1, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, clusters: [m]}
running: [{id: a, binding: a, clusters: {m: 3, n: 3}}]
events: [{at: 0s, submit: z}, {at: 0s, submit: y}]
until: 1m
`, `
0s z on map[n:2] for [a]
0s y on map[m:1] for [a]
10s a on map[n:2] for []
0s a loses 2 on n to z
0s a loses 1 on m to y
unplaced a 1: 0 of 2 clusters: 1 lacks cpu; no preemption: the binding's preemptionPolicy is Never
running [a y]
`},
		"a duplicated binding preempts to get all of its replicas": {`
policies: [{name: gentle, use: karmada, config: {elastic: true}}]
scheduler: {policy: gentle}
clusters: [{id: m, capacity: {cpu: 3000}}, {id: n, capacity: {cpu: 3000}}]
bindings:
- {id: low, priority: 0, replicas: 2, minReplicas: 1, resources: {cpu: 1000}, killTimeout: 10s}
- {id: a, priority: 1, replicas: 3, minReplicas: 1, resources: {cpu: 1000}, replicaScheduling: duplicated, preemptionPolicy: PreemptLowerPriority}
running: [{id: low, binding: low, clusters: {m: 2}}, {id: a, binding: a, clusters: {m: 1, n: 1}}]
events: [{at: 0s, submit: a}]
until: 1m
`, `
0s a on map[m:2] for [low]
0s a on map[n:2] for []
0s low loses 2 on m to a
unplaced low 2: 0 of 2 clusters: 2 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [a]
`},
		"replicas above the minimum are redistributed over regions": {`
policies: [{name: both, use: karmada, config: {elastic: true, multiCluster: true}}]
scheduler: {policy: both}
clusters:
- {id: m, capacity: {cpu: 3000}, attributes: {region: x}}
- {id: n, capacity: {cpu: 3000}, attributes: {region: x}}
- {id: o, capacity: {cpu: 3000}, attributes: {region: y}}
bindings:
- {id: a, priority: 1, replicas: 9, minReplicas: 7, resources: {cpu: 1000}}
- {id: z, priority: 5, replicas: 2, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, spread: {by: region, minGroups: 2}}
running: [{id: a, binding: a, clusters: {m: 3, n: 3, o: 3}}]
events: [{at: 0s, submit: z}]
until: 1m
`, `
0s z on map[m:1] for [a]
0s z on map[o:1] for [a]
0s a loses 1 on m to z
0s a loses 1 on o to z
unplaced a 2: 0 of 3 clusters: 3 lack cpu; no preemption: the binding's preemptionPolicy is Never
running [a z]
`},
		"no eviction if there are fewer clusters than required": {`
policies: [{name: wide, use: karmada, config: {multiCluster: true}}]
scheduler: {policy: wide}
clusters: [{id: m, capacity: {cpu: 4000}}, {id: n, capacity: {cpu: 4000}}]
bindings:
- {id: a, priority: 1, resources: {cpu: 4000}}
- {id: z, priority: 5, replicas: 4, resources: {cpu: 1000}, preemptionPolicy: PreemptLowerPriority, spread: {minClusters: 3}}
running: [{id: a, binding: a, clusters: {m: 1}}]
events: [{at: 0s, submit: z}]
until: 1m
`, `
unplaced z 4: 0 of 2 clusters: 1 lacks cpu, 1 excluded by spread constraint: at least 3 of the clusters; eviction does not help: on 1 nothing has a priority of 4 or less, on 1 too little would be free after all possible evictions
running [a]
`},
		"a change of replicas applies to the assigned clusters": {`
clusters: [{id: m, capacity: {cpu: 3000}}]
bindings: [{id: a, priority: 1, replicas: 3, resources: {cpu: 1000}, replicaScheduling: duplicated}]
running: [{id: a, binding: a, clusters: {m: 1}}]
events: [{at: 0s, submit: a}]
`, `
0s a on map[m:2] for []
running [a]
`},
		"a binding that runs incompletely at time 0 is completed only after its submission": {`
clusters: [{id: m, capacity: {cpu: 4000}}, {id: n, capacity: {cpu: 4000}}]
bindings:
- {id: a, priority: 1, replicas: 6, resources: {cpu: 1000}}
- {id: b, priority: 1, replicas: 3, resources: {cpu: 1000}}
running: [{id: a, binding: a, clusters: {m: 3}}, {id: b, binding: b, clusters: {m: 1}}]
events: [{at: 1m, submit: b}]
until: 5m
`, `
1m0s b on map[n:2] for []
unplaced a 3: 3 of 6 replicas ran at time 0, and no event caused an evaluation: submit it to place the rest
running [a b]
`},
	} {
		t.Run(name, func(t *testing.T) {
			text := head + c.text
			if strings.Contains(c.text, "scheduler:") {
				text = c.text
			}
			run := play(t, decode(t, text), sim.Options{Resolve: resolve})
			if got, want := bindingTranscript(run.Result), strings.TrimPrefix(c.want, "\n"); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// Metrics count replicas if there are bindings, and are absent otherwise.
func TestBindings_MetricsCountReplicas(t *testing.T) {
	t.Parallel()
	m := play(t, decode(t, `scheduler: {policy: karmada}
clusters: [{id: m1, capacity: {cpu: 4000}}]
bindings:
- {id: low, priority: 1, replicas: 3, resources: {cpu: 1000}}
- {id: high, priority: 9, preemptionPolicy: PreemptLowerPriority, replicas: 2, resources: {cpu: 2000}}
running: [{id: l1, binding: low, clusters: {m1: 3}}]
events: [{at: 0s, submit: high}]
`), sim.Options{}).Metrics
	if m.BoundReplicas == nil || *m.BoundReplicas != 2 || *m.EvictedReplicas != 3 || *m.UnboundReplicas != 3 || m.Placed != 0 {
		t.Errorf("%+v", m)
	}
	m = play(t, decode(t, `
nodes: [{id: n1, capacity: {cpu: 1000}}]
`), sim.Options{}).Metrics
	if m.BoundReplicas != nil || m.EvictedReplicas != nil || m.UnboundReplicas != nil {
		t.Errorf("no bindings: %+v", m)
	}
}
