package model

import "cmp"

// EvalStatus is the status of an evaluation.
type EvalStatus uint8

// The statuses. All but the first two are final.
const (
	EvalPending EvalStatus = iota
	EvalBlocked
	EvalComplete
	EvalFailed
	EvalCancelled
)

func (s EvalStatus) String() string {
	return [...]string{"pending", "blocked", "complete", "failed", "cancelled"}[s]
}

// Final reports whether the status cannot change any more.
func (s EvalStatus) Final() bool { return s >= EvalComplete }

// Trigger is the reason why an evaluation was created.
type Trigger string

// The triggers.
const (
	TriggerJobRegister Trigger = "job-register"
	TriggerJobStop     Trigger = "job-deregister"
	TriggerNodeUpdate  Trigger = "node-update"
	TriggerNodeDrain   Trigger = "node-drain"
	TriggerPreemption  Trigger = "preemption"
	TriggerAllocStop   Trigger = "alloc-stop"
	TriggerUnblocked   Trigger = "queued-allocs"
	TriggerRecheck     Trigger = "recheck"
	TriggerFailed      Trigger = "failed-follow-up"
)

// An Evaluation requests that one job or binding is scheduled again. It carries
// nothing that is not in the state, so any evaluation of a job can stand for all of
// them.
type Evaluation struct {
	ID          string
	Namespace   string
	JobID       string
	Type        JobType
	Priority    int32
	TriggeredBy Trigger
	Status      EvalStatus
	StatusText  string

	WaitUntil     int64  // Unix nanoseconds before which it must not run; 0 for at once
	SnapshotIndex uint64 // index of the state on which it blocked
	Attempts      int32  // consecutive attempts without a placement, including those of earlier evaluations
	Previous      string // the evaluation that created this one
	Blocked       string // the blocked evaluation that this one created
	SupersededBy  string // the evaluation that covers this one

	// Why it blocked.
	Classes      map[uint64]bool         // class key to feasibility; classes that are absent were not checked
	Escaped      bool                    // a constraint reads node.id, so classes do not decide
	BlockedNodes []string                // for system jobs: the nodes without capacity, ascending
	Failed       map[string]*Explanation // by group
	Queued       map[string]int          // missing instances by group

	// Observed holds decisions to evict that were not carried out, instead of which it is
	// blocked; see SchedulerConfig.Observe.
	Observed []*Observation

	// Since is the index since which its binding waits, over all its evaluations,
	// so that among equal priorities the binding that waits longest is first. It is
	// 0 for jobs, which use CreateIndex.
	Since uint64

	CreateIndex uint64
	ModifyIndex uint64
	CreateTime  int64
	ModifyTime  int64
}

// ArrivalIndex returns the index by which evaluations of equal priority are queued.
func (e *Evaluation) ArrivalIndex() uint64 {
	if e.Since != 0 {
		return e.Since
	}
	return e.CreateIndex
}

// CompareQueued compares two evaluations by their order in the queue: by descending priority, then
// by arrival, and by job if one log entry created both.
func (e *Evaluation) CompareQueued(o *Evaluation) int {
	return cmp.Or(cmp.Compare(o.Priority, e.Priority), cmp.Compare(e.ArrivalIndex(), o.ArrivalIndex()), e.JobKey().Compare(o.JobKey()))
}

// JobKey returns the key of the job or binding.
func (e *Evaluation) JobKey() JobKey { return JobKey{e.Namespace, e.JobID} }
