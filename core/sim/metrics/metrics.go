package metrics

// Metrics is the result of a run. Definitions describes each field. A field is nil if
// the metric does not apply to the run.
type Metrics struct {
	Placed   int `json:"placed"`
	Unplaced int `json:"unplaced"`
	Replicas
	Preemptions          int            `json:"preemptions"`
	Victims              int            `json:"victims"`
	VictimsPerPreemption *PerPreemption `json:"victimsPerPreemption,omitempty"`
	UselessVictims       int            `json:"uselessVictims"`
	RegretVictims        *int           `json:"regretVictims,omitempty"`
	RepeatVictims        int            `json:"repeatVictims"`
	PingPong             int            `json:"pingPong"`
	CascadeDepth         Depth          `json:"cascadeDepth"`
	Waste
	Goodput          *float64             `json:"goodput,omitempty"`
	BudgetViolations *int                 `json:"budgetViolations,omitempty"`
	GangsBroken      *int                 `json:"gangsBroken,omitempty"`
	QueueDelay       map[string]Quantiles `json:"queueDelay,omitempty"`
	Starved          int                  `json:"starved"`
	InversionSeconds float64              `json:"inversionSeconds"`
	Utilisation      map[string]float64   `json:"utilisation,omitempty"`
	Fragmentation    map[string]float64   `json:"fragmentation,omitempty"`
	Jain             *float64             `json:"jain,omitempty"`
	Optimality
	DecisionLatency *Latency    `json:"decisionLatency,omitempty"`
	PolicyCalls     int         `json:"policyCalls"`
	PolicyFaults    int         `json:"policyFaults"`
	Evaluations     Evaluations `json:"evaluations"`
}

// Waste is the work that victims and moved instances lost, by resource: in resource-seconds,
// and in the units of WorkUnit.
type Waste struct {
	// Moved is the number of moved instances; nil: moves are off.
	Moved       *int               `json:"moved,omitempty"`
	WastedWork  map[string]float64 `json:"wastedWork,omitempty"`
	WastedHours map[string]float64 `json:"wastedHours,omitempty"`
}

// PerPreemption describes the number of victims per preemption.
type PerPreemption struct {
	Mean float64 `json:"mean"`
	P95  int     `json:"p95"`
	Max  int     `json:"max"`
}

// Depth describes the length of eviction chains.
type Depth struct {
	P99 int `json:"p99"`
	Max int `json:"max"`
}

// Quantiles describes waits, in seconds. The mean shows waits that are too rare for the
// quantiles.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Latency describes wall-clock times, in microseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

// Evaluations counts evaluations by outcome.
type Evaluations struct {
	Created   int `json:"created"`
	Processed int `json:"processed"`
	Cancelled int `json:"cancelled"`
}
