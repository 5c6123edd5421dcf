package client

import "time"

// Evaluation is a request to schedule one job, with its result.
type Evaluation struct {
	ID                   string
	Priority             int
	Type                 string // of the job
	TriggeredBy          string
	Namespace            string
	JobID                string
	Status               string // pending, blocked, complete, failed or cancelled
	StatusDescription    string
	WaitUntil            *time.Time                   `json:",omitempty"` // it does not run before this time
	NextEval             string                       `json:",omitempty"` // evaluation that this one created
	PreviousEval         string                       `json:",omitempty"` // evaluation that created this one
	BlockedEval          string                       `json:",omitempty"` // blocked evaluation that this one created
	SupersededBy         string                       `json:",omitempty"` // evaluation that made this one unnecessary
	RelatedEvals         []*EvaluationStub            `json:",omitempty"`
	FailedTGAllocs       map[string]*AllocationMetric `json:",omitempty"` // by group: reasons why instances were not placed
	EscapedComputedClass bool                         `json:",omitempty"` // constraints match unique attributes of nodes
	QueuedAllocations    map[string]int               `json:",omitempty"` // by group: desired instances that are not placed
	Attempts             int                          `json:",omitempty"` // evaluations since the last placement
	SnapshotIndex        uint64                       // index of the state at which it blocked
	CreateIndex          uint64
	ModifyIndex          uint64
	CreateTime           int64 // Unix nanoseconds
	ModifyTime           int64 // Unix nanoseconds
}

// EvaluationStub is an evaluation that is related to another.
type EvaluationStub struct {
	ID                string
	Priority          int
	Type              string
	TriggeredBy       string
	Namespace         string
	JobID             string
	Status            string
	StatusDescription string
	PreviousEval      string `json:",omitempty"`
	BlockedEval       string `json:",omitempty"`
	CreateIndex       uint64
	ModifyIndex       uint64
	CreateTime        int64
	ModifyTime        int64
}

// EvalCancelRequest lists evaluations to cancel.
type EvalCancelRequest struct {
	EvalIDs []string
	Filter  string `json:",omitempty"` // of Nomad's clients; not supported
}

// EvalCancelResponse is the result of cancelling evaluations.
type EvalCancelResponse struct {
	Count int    // evaluations that are cancelled now, including those that were before
	Index uint64 // at which they are cancelled
}
