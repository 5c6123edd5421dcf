package metrics

import (
	"slices"
	"strings"
)

// Better is the direction in which a metric improves.
type Better string

// Directions of a metric.
const (
	Lower  Better = "lower"
	Higher Better = "higher"
)

// A Definition describes the meaning of a metric.
type Definition struct {
	Name   string // as in the JSON of Metrics; parts and keys follow after a dot
	Unit   string // empty if the metric is a count
	Better Better
	// Context marks a metric that explains others and has no winner: more placements
	// may mean more churn, more evaluations more work or more care.
	Context bool
	// Raw marks a metric that another one repeats in the units of reports; tables omit it.
	Raw  bool
	Text string
}

// Definitions lists every metric in display order. Quantiles use the nearest rank, so
// they are values that occurred. A run lasts from the scenario's start to its end.
var Definitions = slices.Concat(outcomeDefinitions, optimalityDefinitions, controlDefinitions)

// outcomeDefinitions describe what happened to work.
var outcomeDefinitions = []Definition{
	{
		"placed", "", Higher, true, false,
		"Placements made, including replacements and moved instances: the length of the result's list.",
	},
	{
		"unplaced", "", Lower, false, false,
		"Desired instances that are not placed at the end, including evicted ones. Instances of a service that ended by themselves " +
			"wait for nothing and are not included; the list unplaced of the result contains them.",
	},
	{
		"boundReplicas", "", Higher, true, false,
		"Replicas of bindings placed on member clusters, including replacements. Absent if there are no bindings. placed and " +
			"victims do not include bindings.",
	},
	{
		"unboundReplicas", "", Lower, false, false,
		"Desired replicas of bindings that are not placed at the end. Absent if there are no bindings.",
	},
	{
		"evictedReplicas", "", Lower, false, false,
		"Replicas of bindings evicted from member clusters for another binding. Absent if there are no bindings.",
	},
	{
		"moved", "", Lower, false, false,
		"Instances that were moved to another node to make room. Absent if moves are off. Their work since the last checkpoint is part " +
			"of wastedWork; they are no victims.",
	},
	{
		"preemptions", "", Lower, false, false,
		"Placements with at least one victim.",
	},
	{
		"victims", "", Lower, false, false,
		"Allocations evicted for a placement.",
	},
	{
		"victimsPerPreemption", "", Lower, false, false,
		"Mean, p95 and max number of victims per preemption. Absent if there are no preemptions.",
	},
	{
		"uselessVictims", "", Lower, false, false,
		"Victims of placements that never started to run: the placements were evicted, lost or stopped while their victims " +
			"were still stopping.",
	},
	{
		"regretVictims", "", Lower, false, false,
		"Victims minus the fewest eligible candidates that would have sufficed on that node, summed over preemptions. Exact " +
			"by branch and bound; if the search is cut off (20,000 steps for one preemption, 20 million in a run) the " +
			"fewest found counts, so the figure is never too high. Victims on other nodes are not included.",
	},
	{
		"repeatVictims", "", Lower, false, false,
		"Instances (job, group and index, through all replacements) evicted at least twice.",
	},
	{
		"pingPong", "", Lower, false, false,
		"Evictions of an instance that was evicted at most 10 minutes earlier and placed again since.",
	},
	{
		"cascadeDepth", "", Lower, false, false,
		"p99 and max over preemptions of the length of the eviction chain: 1 if the preemptor was not evicted before; if it " +
			"evicts in order to run again, one more than the preemption that evicted it. 0 if there are no preemptions.",
	},
	{
		"wastedWork", "resource-seconds", Lower, false, true,
		"By resource: amount held × time since the start or the last checkpoint, summed over victims, including work before the " +
			"scenario's start. Resources are those that at least one node offers; devices count by vendor/type.",
	},
	{
		"wastedHours", "hours", Lower, false, false,
		"wastedWork in the units of reports, by resource: core-hours of cpu, GiB-hours of memory and disk, hours of one unit of any " +
			"other resource.",
	},
	{
		"goodput", "share", Higher, false, false,
		"Useful ÷ (useful + wasted) work. Useful work is work that ran and was not lost; work lost with nodes counts as " +
			"neither. Resources are added as shares of the ready capacity. Absent if nothing ran.",
	},
	{
		"budgetViolations", "", Lower, false, false,
		"Victims evicted in violation of a disruption budget. Absent if there are no budgets.",
	},
	{
		"gangsBroken", "", Lower, false, false,
		"Times that evictions left an allAtOnce job with some but not all of its instances at the end of an instant; " +
			"the job counts again only after it was complete. Absent if there are no such jobs.",
	},
	{
		"queueDelay", "s", Lower, false, false,
		"By priority band: mean, p50, p90, p99 and max of the time from when an instance was desired (or evicted) until it " +
			"started, including the time in which its victims stop. Waits that are still open at the end, or were abandoned, " +
			"count with their length so far. A band is one priority or, if a scenario has more than 8, one of 4 ranges " +
			"lowest..highest with about equally many priorities each.",
	},
	{
		"starved", "", Lower, false, false,
		"Waits longer than 1 h and, in a scenario without `until`, waits that are still open when no event is left.",
	},
	{
		"inversionSeconds", "instance-s", Lower, false, false,
		"Time that instances waited while any preemptible allocation of lower priority was placed, summed over instances. It " +
			"is an upper bound: evicting that allocation might not have freed enough capacity.",
	},
	{
		"utilisation", "share", Higher, false, false,
		"By resource: capacity held by placed allocations ÷ capacity of ready nodes, both integrated over the run. A " +
			"stopping victim holds nothing. If the run has no duration, the values at the end.",
	},
	{
		"fragmentation", "share", Lower, false, false,
		"By resource: free capacity on ready nodes that cannot fit the typical request ÷ all free capacity, both " +
			"integrated over the run. The typical request is the median of each resource over all instances of the scenario, " +
			"the same for every policy. Absent if there was never free capacity.",
	},
	{
		"jain", "index", Higher, false, false,
		"Jain's fairness index over the namespaces that requested resources: (Σx)² ÷ (n × Σx²), where x is a " +
			"namespace's dominant share of the run's capacity ÷ its weight. 1 is equal. Absent if there is one namespace.",
	},
}

// controlDefinitions describe the cost of deciding.
var controlDefinitions = []Definition{
	{
		"decisionLatency", "µs", Lower, false, false,
		"p50, p99 and p999 of the wall-clock time of one evaluation. Present only with --timing.",
	},
	{
		"policyCalls", "", Lower, true, false,
		"Calls of the policy's hooks.",
	},
	{
		"policyFaults", "", Lower, false, false,
		"Faults of the policy: traps, timeouts and invalid results.",
	},
	{
		"evaluations", "", Lower, true, false,
		"Created, processed and cancelled evaluations. A cancelled one was superseded before it was processed.",
	},
}

// Define returns the definition of a metric by its dotted name.
func Define(name string) (Definition, bool) {
	for _, d := range Definitions {
		if name == d.Name || len(name) > len(d.Name) && name[:len(d.Name)] == d.Name && name[len(d.Name)] == '.' {
			return d, true
		}
	}
	return Definition{}, false
}

// Unit returns the unit of a metric by its dotted name; empty if it is a count.
func Unit(name string) string {
	d, _ := Define(name)
	if resource, ok := strings.CutPrefix(name, "wastedHours."); ok {
		unit, _ := WorkUnit(resource)
		return unit
	}
	return d.Unit
}

// WorkUnit returns the unit in which people compare work on a resource, and the number of
// resource-seconds of one unit. CPU is counted in millicores, memory and disk in MiB.
func WorkUnit(resource string) (name string, seconds float64) {
	const hour = 3600
	switch resource {
	case "cpu":
		return "core-hours", 1000 * hour
	case "memory", "disk":
		return "GiB-hours", 1024 * hour
	}
	return resource + "-hours", hour
}
