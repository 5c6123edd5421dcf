package model

import "fmt"

// Algorithm is how nodes that have room are ranked.
type Algorithm string

// The ranking algorithms.
const (
	Binpack    Algorithm = "binpack" // fullest first
	SpreadRank Algorithm = "spread"  // emptiest first
)

// ParseAlgorithm accepts "", binpack and spread.
func ParseAlgorithm(s string) (Algorithm, error) {
	switch Algorithm(s) {
	case "", Binpack:
		return Binpack, nil
	case SpreadRank:
		return SpreadRank, nil
	}
	return "", fmt.Errorf("unknown algorithm %q: want binpack or spread", s)
}

// SchedulerConfig is what operators set for the whole cluster. It lives in the
// state, so every worker that plans on one snapshot uses the same one.
type SchedulerConfig struct {
	Algorithm     Algorithm
	Preemption    [EvalTypes]bool // by JobType
	PriorityDelta *int32          // the base gap; nil: the policy's own
	Policy        string          // name of the active policy
	OnFault       string          // OnFaultDeny (also where empty) or OnFaultDefault
	BrokerPaused  bool            // evaluations are kept and none is handed out
	Coalescing    *bool           // one evaluation of a job is kept for many; nil: on
	Shedding      *bool           // what is superseded is cancelled; nil: on
	Gates         FeatureGates

	ModifyIndex uint64
}

// FeatureGates switch what bindings get of their priorities. Nil is on: whether
// anybody is evicted is up to Preemption, too.
type FeatureGates struct {
	PriorityBasedScheduling           *bool // they are queued by priority; off: as they come
	PriorityBasedPreemptiveScheduling *bool // they evict; not without the other
	// StrictPriorityClasses has bindings refused that name a class which is not
	// there; nil is off: they count as 0, and never evict.
	StrictPriorityClasses *bool
}

// BindingsQueueByPriority is whether bindings are queued by priority.
func (c *SchedulerConfig) BindingsQueueByPriority() bool {
	return c == nil || c.Gates.PriorityBasedScheduling == nil || *c.Gates.PriorityBasedScheduling
}

// BindingsPreempt is whether bindings may have others evicted.
func (c *SchedulerConfig) BindingsPreempt() bool {
	gate := c.Gates.PriorityBasedPreemptiveScheduling
	return c.Preemption[JobBinding] && c.BindingsQueueByPriority() && (gate == nil || *gate)
}

// StrictClasses is whether a binding must name a class that is there.
func (c *SchedulerConfig) StrictClasses() bool {
	return c.Gates.StrictPriorityClasses != nil && *c.Gates.StrictPriorityClasses
}

// QueuePriority is by what a binding is queued. Without priorities all are equal,
// as those that name none.
func (c *SchedulerConfig) QueuePriority(b *Binding) int32 {
	if !c.BindingsQueueByPriority() {
		return 0
	}
	return b.Priority
}
