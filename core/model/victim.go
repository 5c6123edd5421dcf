package model

// A PreemptionToleration protects a job's allocations from preemptors by priority
// and time.
type PreemptionToleration struct {
	// MinPreemptorPriority is the priority below which preemptors may not evict the
	// job; nil leaves the decision to the job's own priority.
	MinPreemptorPriority *int32
	// MinRuntime protects a started allocation until it has run for so many
	// nanoseconds. An allocation that has not started has no work to lose.
	MinRuntime int64
}

// HasEvictionRules reports whether the eviction of the job's allocations depends on
// more than its priority.
func (j *Job) HasEvictionRules() bool { return j.Toleration != nil || j.AllOrNone }

// InCohort reports whether the allocation is evicted only together with the other
// members of its job's cohort. The version that it runs decides, not the current
// job.
func (a *Allocation) InCohort() bool { return a.Live() && a.Job.AllOrNone }

// SurplusInstances returns how many of the live instances of a group may be evicted
// individually although the job is all-or-none.
func (j *Job) SurplusInstances(group string, live int) int {
	if g := j.Group(group); g != nil && g.MinCount > 0 {
		return max(0, live-g.MinCount)
	}
	return 0
}

// ProtectedFrom reports whether an allocation of the job may not be evicted for a
// preemptor of a priority at a time in Unix nanoseconds. until is when the
// protection ends, or 0 if time does not end it.
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
