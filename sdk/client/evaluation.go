package client

import "time"

// Evaluation is the order to look at one job again, and what came of it.
type Evaluation struct {
	ID                   string
	Priority             int
	Type                 string // of the job
	TriggeredBy          string
	Namespace            string
	JobID                string
	Status               string // pending, blocked, complete, failed or cancelled
	StatusDescription    string
	WaitUntil            *time.Time                   `json:",omitempty"` // before which it shall not run
	NextEval             string                       `json:",omitempty"` // that this one made
	PreviousEval         string                       `json:",omitempty"` // that made this one
	BlockedEval          string                       `json:",omitempty"` // the blocked one that this one made
	SupersededBy         string                       `json:",omitempty"` // the one that made this one needless
	RelatedEvals         []*EvaluationStub            `json:",omitempty"`
	FailedTGAllocs       map[string]*AllocationMetric `json:",omitempty"` // by group: why instances were not placed
	EscapedComputedClass bool                         `json:",omitempty"` // it reads single nodes' names
	QueuedAllocations    map[string]int               `json:",omitempty"` // by group: instances still wanted
	Attempts             int                          `json:",omitempty"` // how often no place was found since something was placed
	SnapshotIndex        uint64                       // the state that was looked at when it blocked
	CreateIndex          uint64
	ModifyIndex          uint64
	CreateTime           int64 // Unix nanoseconds
	ModifyTime           int64 // Unix nanoseconds
}

// EvaluationStub is an evaluation beside another.
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
