// Package generate makes scenarios from a small spec: a cluster, classes of
// work with their sizes and arrivals, how much load each priority band offers,
// and what fails when. Presets are specs that come with the program.
//
// It never runs anything and reads no clock. The same spec gives the same
// scenario, byte for byte, on every machine: chance comes from PCG streams
// seeded by the spec, one for each class, and from sdk/fmath. A stream depends
// on the seed and the class's name alone, so a class that is added or changed
// leaves the work of the others as it is, unless they share a band's load.
//
// `cede sim generate` calls it. A Spec must not be changed while one of the
// functions uses it; otherwise all may be called concurrently.
//
// # A spec
//
//	name: contended
//	description: three bands on two kinds of nodes
//	seed: 7
//	horizon: 2h                    # work arrives before this
//	until: 3h                      # optional: the scenario's end
//	nodes:
//	  - id: std                    # std-0, std-1, ... when there are several
//	    count: 40
//	    class: std
//	    datacenter: dc1
//	    capacity: {cpu: 32000, memory: 128Gi}
//	    jitter: 5                  # per cent up or down, for each node and resource
//	    attributes: {zone: [a, b, c], rack: r1}   # lists are dealt in turn
//	    devices: [{id: nvidia/gpu/a100, count: 8}]
//	bands:
//	  - {name: low, priority: 20, load: 0.9}      # of the capacity, over the horizon
//	classes:
//	  - name: sweep
//	    band: low                  # or a priority of its own
//	    weight: 2                  # its part of what is left of the band's load; default 1
//	    jobs: 40                   # in place of a weight: so many
//	    type: batch                # default; service, system, sysbatch
//	    namespace: team-a
//	    arrival: {process: poisson, from: 0s, until: 1h}
//	    groups: 1                  # of each job, drawn one by one
//	    tasks: {uniform: [1, 8]}   # of each group
//	    resources:
//	      cpu: {choice: [500, 1000, 4000], weights: [6, 3, 1]}
//	      memory: {lognormal: {median: 2Gi, sigma: 0.8}, min: 256Mi, max: 32Gi}
//	    devices: {id: nvidia/gpu, count: {choice: [1, 2, 8]}}
//	    duration: {pareto: {alpha: 1.2}, min: 1m, max: 2h}    # absent: for ever
//	    checkpoint: 10m
//	    killTimeout: 30s
//	    gang: false                # all tasks at once, or none
//	    preemptible: true
//	    labels: {app: sweep}
//	    distinctHosts: false
//	    spread: {attribute: zone, weight: 50, maxSkew: 1}
//	    pin: {attribute: zone, share: 30}                   # per cent of the jobs must run in one zone
//	    prefer: {attribute: zone, share: 50, weight: 40}    # and so many would like to
//	    constraints: [{attribute: rack, operator: "=", value: r1}]
//	failures:
//	  - {at: 30m, nodes: 10%, where: {zone: a}, back: 15m}    # or a number; drain: true
//
// Amounts, counts and durations may be a fixed value or one of uniform,
// choice, lognormal and pareto; what is drawn lies between min and max, which
// the last two must have, and is a multiple of step where there is one.
//
// Arrivals: burst (all at once, or dealt over several times `at`), poisson (as
// many as jobs or the load say, or perHour), every (one each period), at (one
// at each time). The load of a class is the time its tasks would run, times
// what they ask for, over capacity times horizon, for the resource of which
// it asks most; work that runs for ever counts until the horizon.
package generate
