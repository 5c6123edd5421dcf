package model

// PreemptionToleration says from whom, and for how long, a job's allocations
// are spared.
type PreemptionToleration struct {
	// MinPreemptorPriority: preemptors below it evict nothing of the job; nil:
	// its own priority decides alone.
	MinPreemptorPriority *int32
	// MinRuntime: an allocation is spared until it has worked for so many
	// nanoseconds. What has not begun has no work to lose.
	MinRuntime int64
}

// HasEvictionRules is whether more than its priority says who of the job may be a
// victim, or who goes with one.
func (j *Job) HasEvictionRules() bool { return j.Toleration != nil || j.AllOrNone }

// InCohort is whether the allocation is evicted with those of its job of which the
// same is true: the version that it runs decides, not the job as it is now.
func (a *Allocation) InCohort() bool { return a.Live() && a.Job.AllOrNone }

// SurplusInstances is how many of so many instances of a group may be evicted one by one,
// though the job is one that is evicted whole.
func (j *Job) SurplusInstances(group string, live int) int {
	if g := j.Group(group); g != nil && g.MinCount > 0 {
		return max(0, live-g.MinCount)
	}
	return 0
}

// ProtectedFrom is whether an allocation of the job may not be evicted for a preemptor
// of a priority at a time in Unix nanoseconds. until is when time makes it
// eligible; 0: time does not.
func (j *Job) ProtectedFrom(a *Allocation, preemptor int32, now int64) (until int64, spared bool) {
	t := j.Toleration
	switch {
	case t == nil:
		return 0, false
	case t.MinPreemptorPriority != nil && preemptor < *t.MinPreemptorPriority:
		return 0, true
	case t.MinRuntime > 0 && a.Started && now < a.StartTime+t.MinRuntime:
		return a.StartTime + t.MinRuntime, true
	}
	return 0, false
}
