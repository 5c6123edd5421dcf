// Package generate generates scenarios from a small spec: a cluster, classes of jobs
// with their sizes and arrivals, the load of each priority band, and failures.
// Presets are specs that are embedded in the program.
//
// It never runs a scenario and never reads the clock. The same spec gives the same
// scenario, byte for byte, on every machine: random numbers come from PCG streams
// seeded by the spec, one per class, and from sdk/fmath. A stream depends only on the
// seed and the name of the class. If a class is added or changed, the jobs of other
// classes stay the same, unless they share the load of a band.
//
// `cede sim generate` calls it. All functions are safe for concurrent use if no Spec
// is modified at the same time.
//
// # A spec
//
//	name: contended
//	description: three bands on two kinds of nodes
//	seed: 7
//	horizon: 2h                    # jobs arrive before this time
//	until: 3h                      # optional: the end of the scenario
//	nodes:
//	  - id: std
//	    count: 40                  # ids std-0, std-1, ... if above 1
//	    class: std
//	    datacenter: dc1
//	    capacity: {cpu: 32000, memory: 128Gi}
//	    jitter: 5                  # per cent up or down, per node and resource
//	    attributes: {zone: [a, b, c], rack: r1}   # lists are assigned round-robin
//	    devices: [{id: nvidia/gpu/a100, count: 8}]
//	bands:
//	  - {name: low, priority: 20, load: 0.9}      # fraction of the capacity over the horizon
//	classes:
//	  - name: sweep
//	    band: low                  # or a priority
//	    weight: 2                  # share of the remaining load of the band; default 1
//	    jobs: 40                   # instead of a weight: a fixed number
//	    type: batch                # default; service, system, sysbatch
//	    namespace: team-a
//	    arrival: {process: poisson, from: 0s, until: 1h}
//	    groups: 1                  # per job; each group is drawn separately
//	    tasks: {uniform: [1, 8]}   # per group
//	    resources:
//	      cpu: {choice: [500, 1000, 4000], weights: [6, 3, 1]}
//	      memory: {lognormal: {median: 2Gi, sigma: 0.8}, min: 256Mi, max: 32Gi}
//	    devices: {id: nvidia/gpu, count: {choice: [1, 2, 8]}}
//	    duration: {pareto: {alpha: 1.2}, min: 1m, max: 2h}    # unlimited if absent
//	    checkpoint: 10m
//	    killTimeout: 30s
//	    gang: false                # all tasks are placed at once, or none
//	    preemptible: true
//	    labels: {app: sweep}
//	    distinctHosts: false
//	    spread: {attribute: zone, weight: 50, maxSkew: 1}
//	    pin: {attribute: zone, share: 30}                   # per cent of the jobs that must run in one zone
//	    prefer: {attribute: zone, share: 50, weight: 40}    # per cent of the jobs that prefer one zone
//	    constraints: [{attribute: rack, operator: "=", value: r1}]
//	failures:
//	  - {at: 30m, nodes: 10%, where: {zone: a}, back: 15m}    # or a number; drain: true
//
// Amounts, counts and durations are fixed values or one of uniform, choice, lognormal
// and pareto. A drawn value lies between min and max, which lognormal and pareto
// require, and is a multiple of step if the spec has one.
//
// Arrival processes: burst (all jobs at once, or distributed over the times in `at`),
// poisson (the number is given by jobs, the load or perHour), every (one job per
// period), at (one job at each time). The load of a class is the product of the run
// time and the request of its tasks, divided by capacity and horizon, for the
// resource with the highest result. Tasks of unlimited duration count until the
// horizon.
package generate
