package model

// EvalStatus is how far an evaluation has come.
type EvalStatus uint8

// The states of an evaluation. All but the first two are final.
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

// Final is whether the status will not change any more.
func (s EvalStatus) Final() bool { return s >= EvalComplete }

// Trigger is why an evaluation was made.
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

// Evaluation is the order to look at one job again. It carries nothing that is
// not in the state: whichever evaluation of a job runs next sees everything.
type Evaluation struct {
	ID          string
	Namespace   string
	JobID       string
	Type        JobType
	Priority    int32
	TriggeredBy Trigger
	Status      EvalStatus
	StatusText  string

	WaitUntil     int64  // Unix nanoseconds before which it shall not run; 0: at once
	SnapshotIndex uint64 // the state that was looked at when it blocked
	Attempts      int32  // how often it, or those it follows, found no place since something was placed
	Previous      string // the evaluation that made this one
	Blocked       string // the blocked evaluation that this one made
	SupersededBy  string // the evaluation that made this one needless

	// What is known of why it blocked.
	Classes      map[uint64]bool         // class key -> may be feasible; classes not listed were not seen
	Escaped      bool                    // a constraint reads node.id: no class tells
	BlockedNodes []string                // system jobs: the nodes without room, ascending
	Failed       map[string]*Explanation // by group
	Queued       map[string]int          // instances still wanted, by group

	// Since is the index since which its binding has waited, however many
	// evaluations there were: of equal priority who came first is first. 0: it is
	// of a job, and CreateIndex says it.
	Since uint64

	CreateIndex uint64
	ModifyIndex uint64
	CreateTime  int64
	ModifyTime  int64
}

// ArrivalIndex is the index by which evaluations of equal priority are queued.
func (e *Evaluation) ArrivalIndex() uint64 {
	if e.Since != 0 {
		return e.Since
	}
	return e.CreateIndex
}

// JobKey identifies the job that the evaluation is about.
func (e *Evaluation) JobKey() JobKey { return JobKey{e.Namespace, e.JobID} }
