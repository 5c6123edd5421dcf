package model

import "fmt"

// Algorithm determines how feasible nodes are ranked.
type Algorithm string

// The ranking algorithms.
const (
	Binpack    Algorithm = "binpack" // fullest first
	SpreadRank Algorithm = "spread"  // emptiest first
)

// ParseAlgorithm returns the algorithm with the name; "" selects binpack. It
// returns an error for an unknown name.
func ParseAlgorithm(s string) (Algorithm, error) {
	switch Algorithm(s) {
	case "", Binpack:
		return Binpack, nil
	case SpreadRank:
		return SpreadRank, nil
	}
	return "", fmt.Errorf("unknown algorithm %q: must be binpack or spread", s)
}

// SchedulerConfig is the configuration that operators set for the whole cluster. It
// is part of the state, so workers that plan on the same snapshot use the same one.
type SchedulerConfig struct {
	Algorithm  Algorithm
	Preemption [EvalTypes]bool // by JobType
	// Observe makes the decisions of job types that may not preempt, and records them
	// without evicting. Preemption prevails. Bindings are not observed.
	Observe       [EvalTypes]bool
	PriorityDelta *int32 // the base gap; nil uses the policy's own
	Policy        string // name of the active policy
	OnFault       string // OnFaultDeny (also if empty) or OnFaultDefault
	BrokerPaused  bool   // evaluations are queued and none is delivered
	Coalescing    *bool  // one evaluation of a job stands for many; nil: on
	Shedding      *bool  // superseded evaluations are cancelled; nil: on
	Gates         FeatureGates
	// Moves is how many instances of one job may be moved to other nodes in any window,
	// to make room for instances that fit nowhere. nil: nothing is moved.
	Moves *Rate

	ModifyIndex uint64
}

// FeatureGates control how bindings use their priorities; nil means on. Preemption
// must allow evictions as well.
type FeatureGates struct {
	PriorityBasedScheduling           *bool // queue by priority; off: in order of arrival
	PriorityBasedPreemptiveScheduling *bool // preempt; requires the other
	// StrictPriorityClasses refuses bindings that name a missing class. nil is off:
	// such a binding has priority 0 and never preempts.
	StrictPriorityClasses *bool
}

// Observes reports whether decisions of jobs of a type are recorded and not carried out.
func (c *SchedulerConfig) Observes(t JobType) bool { return c.Observe[t] && !c.Preemption[t] }

// BindingsQueueByPriority reports whether bindings are queued by priority.
func (c *SchedulerConfig) BindingsQueueByPriority() bool {
	return c == nil || c.Gates.PriorityBasedScheduling == nil || *c.Gates.PriorityBasedScheduling
}

// BindingsPreempt reports whether bindings may preempt.
func (c *SchedulerConfig) BindingsPreempt() bool {
	gate := c.Gates.PriorityBasedPreemptiveScheduling
	return c.Preemption[JobBinding] && c.BindingsQueueByPriority() && (gate == nil || *gate)
}

// StrictClasses reports whether the priority class of a binding must exist.
func (c *SchedulerConfig) StrictClasses() bool {
	return c.Gates.StrictPriorityClasses != nil && *c.Gates.StrictPriorityClasses
}

// QueuePriority returns the priority by which a binding is queued. If priorities
// are off, it is the same for all bindings.
func (c *SchedulerConfig) QueuePriority(b *Binding) int32 {
	if !c.BindingsQueueByPriority() {
		return 0
	}
	return b.Priority
}

// A Namespace partitions the names of jobs, bindings and budgets, and has a share of
// the cluster. Objects may be in a namespace that is not stored: it has the weight
// DefaultWeight.
type Namespace struct {
	Name string
	// Weight is the share of the cluster that the namespace is entitled to, relative to
	// the weights of the others. Invariant: it is positive and finite.
	Weight      float64
	Description string

	CreateIndex uint64
	ModifyIndex uint64
	// WeightIndex is the index of the last change of the weight; 0: the weight has been
	// DefaultWeight always.
	WeightIndex uint64
}

// DefaultWeight is the weight of namespaces that set none.
const DefaultWeight = 1.0

// DefaultPolicy is the policy that decides what others leave open.
const DefaultPolicy = "default"

// PolicyOf returns the name of the policy that decides for a job; "" if the job is nil.
func (c *SchedulerConfig) PolicyOf(j *Job) string {
	switch {
	case j == nil:
		return ""
	case j.Policy != "":
		return j.Policy
	case c.Policy != "":
		return c.Policy
	}
	return DefaultPolicy
}
