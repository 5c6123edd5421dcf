package proposal

import (
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
)

// Preemption states whether an evaluation may evict, and up to which priority.
type Preemption struct {
	Allowed bool
	// Ceiling is the highest priority that may be evicted.
	// Invariant: math.MinInt64 unless Allowed.
	Ceiling int64
}

// NoPreemption returns a Preemption that allows no evictions.
func NoPreemption() Preemption { return Preemption{Ceiling: math.MinInt64} }

// FallsBack reports whether an evaluation in which a policy is at fault is planned
// again with the default policy. Otherwise it is planned again without evictions.
func FallsBack(v *policy.Version, c *model.SchedulerConfig) bool {
	return v.OnFault == policy.FallBack || v.OnFault == policy.AsConfigured && c.OnFault == model.OnFaultDefault
}

// Reasons in explanations of jobs and of bindings for which eviction does not help.
const (
	InsufficientReason = "too little would be free after all possible evictions"
	DeclinedReason     = "the policy's victims free too little"
	FaultReason        = "the policy was at fault"
)

// TooHighReason states that nothing has a priority up to the ceiling.
func TooHighReason(ceiling int64) string {
	return fmt.Sprintf("nothing has a priority of %d or less", ceiling)
}
