package client

import "time"

// This file holds types that only Nomad's clients use.

// The types of a difference.
const (
	DiffNone    = "None"
	DiffAdded   = "Added"
	DiffDeleted = "Deleted"
	DiffEdited  = "Edited"
)

// JobDiff lists the differences between two specifications of a job, in Nomad's form.
type JobDiff struct {
	Type       string // None, Added, Deleted or Edited
	ID         string
	Fields     []*FieldDiff     `json:",omitempty"`
	Objects    []*ObjectDiff    `json:",omitempty"`
	TaskGroups []*TaskGroupDiff `json:",omitempty"`
}

// TaskGroupDiff lists the differences of a group.
type TaskGroupDiff struct {
	Type    string // None, Added, Deleted or Edited
	Name    string
	Fields  []*FieldDiff      `json:",omitempty"`
	Objects []*ObjectDiff     `json:",omitempty"`
	Tasks   []*TaskDiff       `json:",omitempty"`
	Updates map[string]uint64 `json:",omitempty"` // instances by the change that the plan makes to them
}

// TaskDiff lists the differences of a task.
type TaskDiff struct {
	Type        string // None, Added, Deleted or Edited
	Name        string
	Fields      []*FieldDiff  `json:",omitempty"`
	Objects     []*ObjectDiff `json:",omitempty"`
	Annotations []string      `json:",omitempty"`
}

// FieldDiff is the difference of one value.
type FieldDiff struct {
	Type        string // Added, Deleted or Edited
	Name        string
	Old, New    string
	Annotations []string `json:",omitempty"`
}

// ObjectDiff is the difference of a part with fields of its own.
type ObjectDiff struct {
	Type    string // Added, Deleted or Edited
	Name    string
	Fields  []*FieldDiff  `json:",omitempty"`
	Objects []*ObjectDiff `json:",omitempty"`
}

// JobScaleRequest changes the number of instances of a group.
type JobScaleRequest struct {
	Count          *int64
	Target         map[string]string // Group names the group; a job with one group needs none
	JobModifyIndex uint64            `json:",omitempty"` // fail with a conflict if the job's index differs; 0: no check

	Message string         `json:",omitempty"` // reason of the change; not stored
	Error   bool           `json:",omitempty"` // the event reports a failure; not stored
	Meta    map[string]any `json:",omitempty"` // further data of the event; not stored
}

// JobScaleStatus is the number of instances of a job's groups.
type JobScaleStatus struct {
	JobID          string
	Namespace      string
	JobCreateIndex uint64
	JobModifyIndex uint64
	JobStopped     bool
	TaskGroups     map[string]TaskGroupScaleStatus // by group
}

// TaskGroupScaleStatus counts the instances of a group.
type TaskGroupScaleStatus struct {
	Desired   int
	Placed    int
	Running   int
	Healthy   int // running instances; there are no health checks
	Unhealthy int
}

// JobRevertRequest registers an earlier version of a job again.
type JobRevertRequest struct {
	JobVersion          uint64
	EnforcePriorVersion *uint64 `json:",omitempty"` // fail with a conflict if the current version differs
}

// SearchRequest requests the objects whose ID has a prefix.
type SearchRequest struct {
	Prefix  string
	Context string // jobs, allocs, evals, nodes, namespaces or all
}

// SearchResponse lists IDs by context.
type SearchResponse struct {
	Matches     map[string][]string
	Truncations map[string]bool // contexts with more matches than are listed
}

// TaskState is the state of a task of an allocation. The nodes report the state of
// whole allocations, from which it is derived.
type TaskState struct {
	State      string // pending, running or dead
	Failed     bool
	Restarts   uint64
	StartedAt  *time.Time  `json:",omitempty"`
	FinishedAt *time.Time  `json:",omitempty"`
	Events     []TaskEvent `json:",omitempty"`
}

// TaskEvent is a change of a task's state.
type TaskEvent struct {
	Type           string // Received, Started, Terminated or Killed
	Time           int64  // Unix nanoseconds
	DisplayMessage string
}

// ServerHealth is the health of one server, in Nomad's form.
type ServerHealth struct {
	ID          string
	Name        string
	Address     string // of its Raft transport
	SerfStatus  string // status of the member in gossip
	Version     string
	Leader      bool
	LastContact string // duration
	LastTerm    uint64
	LastIndex   uint64
	Healthy     bool
	Voter       bool
	StableSince time.Time
}

// ServersHealth is the health of the cluster of servers, in Nomad's form.
type ServersHealth struct {
	Healthy          bool
	FailureTolerance int // servers that may fail without loss of the majority
	Servers          []*ServerHealth
	Leader           string
	Voters           []string
}

// AgentHealth is the health of one part of an agent, in Nomad's form.
type AgentHealth struct {
	Ok      bool   `json:"ok"`
	Message string `json:"message"`
}

// AgentHealths is the health of an agent, in Nomad's form. A part that does not run
// is absent.
type AgentHealths struct {
	Client *AgentHealth `json:"client,omitempty"`
	Server *AgentHealth `json:"server,omitempty"`
}
