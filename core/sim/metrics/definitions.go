package metrics

// Better is the direction in which a metric improves.
type Better string

// The directions.
const (
	Lower  Better = "lower"
	Higher Better = "higher"
)

// Definition says what a metric means.
type Definition struct {
	Name   string // as in Metrics' JSON; parts and keys follow after a dot
	Unit   string // "" for a plain count
	Better Better
	// Context marks a metric that explains others and names no winner: more
	// placements may be more churn, more evaluations more work or more care.
	Context bool
	Text    string
}

// Definitions lists every metric in the order in which people read them.
// Quantiles are by nearest rank, so they are values that occurred. A run is
// the time from the scenario's start to its end.
var Definitions = []Definition{
	{
		"placed", "", Higher, true,
		"Placements made, those of replacements included: the length of the result's list.",
	},
	{
		"unplaced", "", Lower, false,
		"Instances wanted and not placed at the end, evicted work included.",
	},
	{
		"boundReplicas", "", Higher, true,
		"Replicas of bindings that got room on member clusters, those of replacements included. Absent without bindings, of " +
			"which placed and victims say nothing.",
	},
	{
		"unboundReplicas", "", Lower, false,
		"Replicas of bindings wanted and not placed at the end. Absent without bindings.",
	},
	{
		"evictedReplicas", "", Lower, false,
		"Replicas of bindings evicted from member clusters for another binding. Absent without bindings.",
	},
	{
		"preemptions", "", Lower, false,
		"Placements with at least one victim.",
	},
	{
		"victims", "", Lower, false,
		"Allocations evicted for a placement.",
	},
	{
		"victimsPerPreemption", "", Lower, false,
		"mean, p95 and max of the victims of one preemption. Absent without preemptions.",
	},
	{
		"uselessVictims", "", Lower, false,
		"Victims of placements that never began to work: they were evicted, lost or stopped while their victims " +
			"were still stopping.",
	},
	{
		"regretVictims", "", Lower, false,
		"Victims minus the fewest eligible ones that would have sufficed on that node, summed over preemptions. Exact " +
			"by branch and bound; where the search is cut off (20,000 steps for one preemption, 20 million in a run) the " +
			"fewest found counts, so the figure is never too high. Victims on other nodes are not judged.",
	},
	{
		"repeatVictims", "", Lower, false,
		"Instances (job, group and index, through all replacements) evicted at least twice.",
	},
	{
		"pingPong", "", Lower, false,
		"Evictions of an instance that had been evicted no more than 10 minutes before and placed again since.",
	},
	{
		"cascadeDepth", "", Lower, false,
		"p99 and max over preemptions of the length of the chain that led to them: 1 for fresh work, and one more than " +
			"the preemption that evicted the preemptor for work that evicts in order to come back. 0 without preemptions.",
	},
	{
		"wastedWork", "resource-seconds", Lower, false,
		"By resource: amount held × time since the start or the last checkpoint, of every victim, work before the " +
			"scenario's start included. Resources are those that some node has; devices count by vendor/type.",
	},
	{
		"goodput", "share", Higher, false,
		"Useful ÷ (useful + wasted) work. Useful is what allocations ran and did not lose; work lost with nodes is " +
			"neither. Resources are added as shares of the ready capacity. Absent when nothing ran.",
	},
	{
		"budgetViolations", "", Lower, false,
		"Victims whose eviction violated a disruption budget. Absent without budgets.",
	},
	{
		"gangsBroken", "", Lower, false,
		"Times that evictions left an allAtOnce job with some but not all of its instances once the instant was over; " +
			"it counts again only after the job was whole. Absent without such jobs.",
	},
	{
		"queueDelay", "s", Lower, false,
		"By priority band p50, p90, p99 and max of the waits from when an instance was wanted (or evicted) until it " +
			"began to work, the victims' stopping included. Waits still open at the end, or given up, count with their " +
			"length so far. A band is one priority or, when a scenario has more than 8, one of 4 ranges lowest..highest " +
			"with about equally many priorities each.",
	},
	{
		"starved", "", Lower, false,
		"Waits longer than 1 h and, in a scenario without `until`, those still open when nothing more can happen.",
	},
	{
		"inversionSeconds", "instance-s", Lower, false,
		"Time that instances waited while any preemptible work of lower priority was placed, summed over instances. It " +
			"does not ask whether that work could have made room, so it is an upper bound.",
	},
	{
		"utilisation", "share", Higher, false,
		"By resource: capacity held by placed allocations ÷ capacity of ready nodes, both integrated over the run. A " +
			"stopping victim holds nothing. Where no time passes, as it is at the end.",
	},
	{
		"fragmentation", "share", Lower, false,
		"By resource: free capacity on ready nodes that have no room for the typical ask ÷ all free capacity, both " +
			"integrated over the run. The typical ask is the median of each resource over all instances of the scenario, " +
			"the same for every policy. Absent where nothing was ever free.",
	},
	{
		"jain", "index", Higher, false,
		"Jain's fairness index over the namespaces that asked for something: (Σx)² ÷ (n × Σx²), where x is a " +
			"namespace's dominant share of the run's capacity ÷ its weight. 1 is equal. Absent with one namespace.",
	},
	{
		"decisionLatency", "µs", Lower, false,
		"p50, p99 and p999 of the wall-clock time of one evaluation. Only with --timing.",
	},
	{
		"policyCalls", "", Lower, true,
		"Calls of the policy's hooks.",
	},
	{
		"policyFaults", "", Lower, false,
		"Answers that were faults of the policy.",
	},
	{
		"evaluations", "", Lower, true,
		"created, processed and cancelled (superseded before anyone looked).",
	},
}

// Define finds the definition of a metric by its dotted name.
func Define(name string) (Definition, bool) {
	for _, d := range Definitions {
		if name == d.Name || len(name) > len(d.Name) && name[:len(d.Name)] == d.Name && name[len(d.Name)] == '.' {
			return d, true
		}
	}
	return Definition{}, false
}
