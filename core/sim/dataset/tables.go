package dataset

// Run identifies the run of a row. Every table starts with these columns.
type Run struct {
	// Name of the scenario.
	Scenario string `parquet:"scenario,dict"`
	// Number of the workload among those of the same scenario name, from 1.
	Draw int64 `parquet:"draw"`
	// Policy under which the scenario was played, as reports name it.
	Policy string `parquet:"policy,dict"`
	// Seed of the run.
	Seed uint64 `parquet:"seed"`
}

// Placement is an allocation that was placed, or the replicas of a binding that were
// assigned to one cluster.
type Placement struct {
	Run
	// Seconds from the start of the scenario to the commit of the plan.
	AtS float64 `parquet:"at_s"`
	// ID of the allocation; null for a binding.
	Alloc string `parquet:"alloc,optional"`
	// ID of the job; null for a binding.
	Job string `parquet:"job,optional"`
	// Name of the group in its job; null for a binding.
	Group string `parquet:"group,optional"`
	// ID of the node; null for a binding.
	Node string `parquet:"node,optional"`
	// ID of the binding; null for an allocation.
	Binding string `parquet:"binding,optional"`
	// ID of the member cluster; null for an allocation.
	Cluster string `parquet:"cluster,optional"`
	// Replicas of the binding on the cluster; null for an allocation.
	Replicas int64 `parquet:"replicas,optional"`
	// Score of the node, to nine decimals; 0 for a binding.
	Score float64 `parquet:"score"`
	// Number of victims on the same node. For a binding, all of its victims, repeated in the
	// row of each cluster.
	Victims int64 `parquet:"victims"`
	// Number of victims on other nodes.
	VictimsElsewhere int64 `parquet:"victims_elsewhere"`
}

// Eviction is a victim: an allocation on a node, or replicas of a binding on a cluster.
type Eviction struct {
	Run
	// Seconds from the start of the scenario to the commit of the plan.
	AtS float64 `parquet:"at_s"`
	// ID of the victim; null for a binding.
	Alloc string `parquet:"alloc,optional"`
	// ID of the victim's job; null for a binding.
	Job string `parquet:"job,optional"`
	// Name of the victim's group; null for a binding.
	Group string `parquet:"group,optional"`
	// Priority of the victim's job; 0 for a binding.
	Priority int64 `parquet:"priority"`
	// ID of the node of the victim; null for a binding.
	Node string `parquet:"node,optional"`
	// ID of the binding; null for an allocation.
	Binding string `parquet:"binding,optional"`
	// ID of the member cluster; null for an allocation.
	Cluster string `parquet:"cluster,optional"`
	// Replicas that were evicted; null for an allocation.
	Replicas int64 `parquet:"replicas,optional"`
	// ID of the allocation or binding that the victim was evicted for.
	By string `parquet:"by"`
	// Seconds of work that the victim lost.
	LostWorkS float64 `parquet:"lost_work_s"`
	// True if the eviction exceeded a disruption budget.
	BudgetViolated bool `parquet:"budget_violated"`
}

// Event is one entry of the timeline of a run: the life of every allocation, assignment
// and claim, in order.
type Event struct {
	Run
	// Seconds from the start of the scenario.
	AtS float64 `parquet:"at_s"`
	// Index of the log entry. The placements and evictions of one plan share it.
	Entry uint64 `parquet:"entry"`
	// placed, started, finished, evicted, stopped, lost or gone for an allocation; assigned,
	// resized, withdrawn, released, claimed or unclaimed for a binding; step for an event of
	// the scenario; rest when no evaluation is ready.
	Kind string `parquet:"kind,dict"`
	// Position of the event in the scenario, from 0; 0 for other kinds than step.
	Step int64 `parquet:"step"`
	// ID of the allocation, assignment or claim.
	Alloc string `parquet:"alloc,optional"`
	// ID of the job or binding.
	Job string `parquet:"job,optional"`
	// Name of the group in its job.
	Group string `parquet:"group,optional"`
	// Index of the instance in its group, from 0.
	Index int64 `parquet:"index"`
	// ID of the node or member cluster.
	Node string `parquet:"node,optional"`
	// Devices that the allocation holds, as `id=count` separated by semicolons.
	Devices string `parquet:"devices,optional"`
	// ID of the allocation or binding that the victim was evicted for.
	By string `parquet:"by,optional"`
	// Seconds of work that an earlier instance has completed.
	SavedWorkS float64 `parquet:"saved_work_s"`
	// Other half of a move to another node: the allocation that continues a stopped one, or
	// that a placed one continues.
	Moved string `parquet:"moved,optional"`
	// Replicas of an assignment; null for an allocation.
	Replicas int64 `parquet:"replicas,optional"`
}

// Pending is a change of the number of instances of a group that could not be placed. A
// group without a row was never pending.
type Pending struct {
	Run
	// Seconds from the start of the scenario to the evaluation.
	AtS float64 `parquet:"at_s"`
	// Namespace of the job.
	Namespace string `parquet:"namespace,dict"`
	// ID of the job or binding.
	Job string `parquet:"job,dict"`
	// Name of the group in its job; for a binding, its ID.
	Group string `parquet:"group,dict"`
	// Priority of the job.
	Priority int64 `parquet:"priority"`
	// Instances, or replicas of a binding, that are pending from now on.
	Pending int64 `parquet:"pending"`
}

// Usage is the use of one resource in one span of time.
type Usage struct {
	Run
	// Start of the span in seconds from the start of the scenario.
	AtS float64 `parquet:"at_s"`
	// Length of the span in seconds.
	WidthS float64 `parquet:"width_s"`
	// Resource: cpu, memory, another one that a node offers, or a device kind vendor/type.
	Resource string `parquet:"resource,dict"`
	// Share of the capacity of ready nodes that allocations hold, from 0 to 1, as a mean over the span.
	Utilisation float64 `parquet:"utilisation"`
	// Share of the free capacity that cannot fit the typical request, from 0 to 1, as a mean over the span.
	Fragmentation float64 `parquet:"fragmentation"`
	// Pending instances of all groups, as a mean over the span.
	Waiting float64 `parquet:"waiting"`
}

// Metric is one number of a run. `cede help metrics` describes each.
type Metric struct {
	Run
	// Dotted name, such as `queueDelay.75.p99`.
	Metric string `parquet:"metric,dict"`
	// Unit; null for a count.
	Unit string `parquet:"unit,optional,dict"`
	// Value.
	Value float64 `parquet:"value"`
}

// tables lists the tables in the order in which they are documented.
var tables = []Table{
	newTable[Placement]("placements"),
	newTable[Eviction]("evictions"),
	newTable[Event]("timeline"),
	newTable[Pending]("queue"),
	newTable[Usage]("utilisation"),
	newTable[Metric]("metrics"),
}

// Positions in tables.
const (
	placements = iota
	evictions
	events
	queue
	utilisation
	metricRows
)
