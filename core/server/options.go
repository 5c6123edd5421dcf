package server

import (
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// RegisterOptions go with a job.
type RegisterOptions struct {
	// Check is the JobModifyIndex that the job must have; 0: it must not exist.
	Check *uint64
	// Key makes the call safe to repeat: the same request under the same key is
	// answered as the first time. "": it is not.
	Key string
	// Token is of a plan to commit as it is, instead of scheduling.
	Token string
	// ExplicitPriority says that a priority of 0 is meant, rather than left out.
	ExplicitPriority bool
	// ExplicitPreemption says that whether a binding preempts is meant, rather than
	// left to its class.
	ExplicitPreemption bool
}

// StopOptions go with the end of a job.
type StopOptions struct {
	Purge bool   // forget the job once all of it has ended
	Key   string // as in RegisterOptions
}

// Registered answers a write that makes an evaluation.
type Registered struct {
	EvalID         string // "": none was needed
	Index          uint64
	JobModifyIndex uint64 // of the job or the binding
	Warnings       []string
	Replayed       bool // the answer is that of an earlier call with the same key
}

// PlanOptions go with a dry run.
type PlanOptions struct {
	ExplicitPriority bool // as in RegisterOptions
}

// Proposal is what registering a job would do now.
type Proposal struct {
	// Token commits exactly this; "" when there is nothing to commit.
	Token          string
	Job            *model.Job // as it would be stored
	Index          uint64     // of the state it was planned on
	JobModifyIndex uint64     // 0: the job is new
	Place          []*model.Allocation
	Update         []*model.Allocation // in place
	Stop           []ProposedStop
	Evict          []ProposedEviction
	Failed         map[string]*model.Explanation // by group
	Queued         map[string]int                // instances without a place, by group
	Changes        Changes
	Warnings       []string
	Expires        time.Time // of Token
}

// ProposedStop is an allocation of the job that would stop.
type ProposedStop struct {
	Alloc  *model.Allocation
	Reason string
}

// ProposedEviction is another job's allocation that would be evicted.
type ProposedEviction struct {
	Alloc  *model.Allocation
	By     string // the allocation that would take its place
	NodeID string
	Policy string // version that chose it
}

// Changes sums a proposal up.
type Changes struct {
	NewJob  bool
	NewSpec bool // the specification differs from the stored one
	Groups  map[string]GroupChange
}

// GroupChange counts instances of a group.
type GroupChange struct {
	Place, Update, Stop, Evict, Unplaced int
}

// NodeLease answers a node that reported itself.
type NodeLease struct {
	Index uint64
	TTL   time.Duration // within which the node must report again
}

// Check is one thing that a server needs to be ready.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// Reloadable is what may change while a server runs; nil leaves it as it is.
type Reloadable struct {
	Workers *int // evaluations worked on at a time; 0: none is
}
