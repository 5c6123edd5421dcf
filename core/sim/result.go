package sim

import (
	"encoding/json"
	"time"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// Result is the result of a run, in the form that the scenario format defines.
type Result struct {
	Version       int         `json:"version"`
	Scenario      string      `json:"scenario"`
	Policy        string      `json:"policy"`
	PolicyVersion string      `json:"policyVersion"`
	Seed          uint64      `json:"seed"`
	Placements    []Placement `json:"placements"`
	Bindings      []Binding   `json:"bindings"`
	Unplaced      []Unplaced  `json:"unplaced"`
	Evicted       []Evicted   `json:"evicted"`
	Moved         []Moved     `json:"moved,omitempty"`
	Running       []string    `json:"running"`
	Decisions     []Decision  `json:"decisions,omitempty"` // to evict; only if Options.Explain is set
	// Observed holds decisions to evict that were not carried out; see Preemption of scenarios.
	Observed []Observed `json:"observed,omitempty"`
	Metrics  any        `json:"metrics"`
}

// Decision is a placement that evicted others, with its reasons as servers record them.
type Decision struct {
	At       At          `json:"at"`
	Alloc    string      `json:"alloc"`
	Job      string      `json:"job"`
	Node     string      `json:"node"`
	Priority int32       `json:"priority"`
	Victims  []string    `json:"victims"`
	Why      *events.Why `json:"why"`
	WhatIf   []WhatIf    `json:"whatIf,omitempty"` // one for each victim; only if Options.WhatIf is set
}

// Observed is a decision to evict that was recorded and not carried out.
type Observed struct {
	At       At          `json:"at"`
	Alloc    string      `json:"alloc"` // that would have been placed
	Job      string      `json:"job"`
	Group    string      `json:"group"`
	Node     string      `json:"node"`
	Priority int32       `json:"priority"`
	Victims  []string    `json:"victims"` // ascending
	LostWork At          `json:"lostWork"`
	Why      *events.Why `json:"why,omitempty"` // only if Options.Explain is set

	Cost   Cost          `json:"-"`
	Choice *model.Choice `json:"-"` // explains the decision
}

// Cost sums up the victims of a decision.
type Cost struct {
	HighestPriority  int32
	BudgetViolations int
}

// WhatIf states in words what would have spared a victim.
type WhatIf struct {
	Victim      string   `json:"victim"`
	Text        []string `json:"text"`
	Evaluations int      `json:"evaluations"` // that were executed
}

// At is a time of the run in nanoseconds since its start, written as "1m0s".
type At int64

// MarshalJSON writes a Go duration.
func (a At) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(a).String()) }

// String returns a Go duration.
func (a At) String() string { return time.Duration(a).String() }

// Placement is an allocation that was placed, at the instant at which its plan was
// committed.
type Placement struct {
	At        At       `json:"at"`
	Alloc     string   `json:"alloc"`
	Job       string   `json:"job"`
	Group     string   `json:"group"`
	Node      string   `json:"node"`
	Preempted []string `json:"preempted"`
	// PreemptedElsewhere lists victims on other nodes, by node.
	PreemptedElsewhere map[string][]string `json:"preemptedElsewhere,omitempty"`
	Score              float64             `json:"score"`

	Why *model.Choice `json:"-"` // explains the evictions; nil if there are none
}

// Binding is a binding that was assigned to clusters, with the number of replicas. It
// is listed at the instant at which its plan was committed; if bindings were evicted
// for it, at the instant of their eviction and of its claim.
type Binding struct {
	At        At             `json:"at"`
	Binding   string         `json:"binding"`
	Clusters  map[string]int `json:"clusters"`
	Preempted []string       `json:"preempted"`
}

// Unplaced counts desired instances of a group, or replicas of a binding, that were
// not placed at the end.
type Unplaced struct {
	Job     string `json:"job,omitempty"`
	Group   string `json:"group,omitempty"`
	Binding string `json:"binding,omitempty"`
	Count   int    `json:"count"`
	Reason  string `json:"reason"`
}

// Evicted is a victim: an allocation on a node, or a binding's replicas on a cluster.
type Evicted struct {
	At             At     `json:"at"`
	Alloc          string `json:"alloc,omitempty"`
	Binding        string `json:"binding,omitempty"`
	By             string `json:"by"`
	Node           string `json:"node,omitempty"`
	Cluster        string `json:"cluster,omitempty"`
	Replicas       int    `json:"replicas,omitempty"`
	LostWork       At     `json:"lostWork"`
	BudgetViolated bool   `json:"budgetViolated"`

	// Of the victim, for reports; unset for bindings.
	Job      string `json:"-"`
	Group    string `json:"-"`
	Priority int32  `json:"-"`
}

// Moved is an instance that was moved to another node to make room.
type Moved struct {
	At       At       `json:"at"`
	Alloc    string   `json:"alloc"`
	Node     string   `json:"node"`
	To       string   `json:"to"` // the allocation that continues it
	ToNode   string   `json:"toNode"`
	For      []string `json:"for"` // placements on the node that it left
	LostWork At       `json:"lostWork"`
}

// Run is a scenario that was played to its end.
type Run struct {
	Result   *Result
	Metrics  *metrics.Metrics
	Series   *metrics.Series
	Faults   []error // of policies, in order
	Warnings []string
}
