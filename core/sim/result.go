package sim

import (
	"encoding/json"
	"time"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// Result is what a run shows, in the form that the scenario format promises.
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
	Running       []string    `json:"running"`
	Metrics       any         `json:"metrics"`
}

// At is a moment of the run, in nanoseconds since its start, written as "1m0s".
type At int64

// MarshalJSON writes a Go duration.
func (a At) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(a).String()) }

// String is the same text.
func (a At) String() string { return time.Duration(a).String() }

// Placement is an allocation that was placed, at the instant at which its plan
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
}

// Binding is a binding that got room: where, and how many replicas. It is listed
// at the instant at which its plan committed, or where others were evicted for it,
// at that of their evictions and of its claim.
type Binding struct {
	At        At             `json:"at"`
	Binding   string         `json:"binding"`
	Clusters  map[string]int `json:"clusters"`
	Preempted []string       `json:"preempted"`
}

// Unplaced counts what was wanted and not placed at the end: instances of a group
// of a job, or replicas of a binding.
type Unplaced struct {
	Job     string `json:"job,omitempty"`
	Group   string `json:"group,omitempty"`
	Binding string `json:"binding,omitempty"`
	Count   int    `json:"count"`
	Reason  string `json:"reason"`
}

// Evicted is a victim: an allocation on a node, or what a binding had on a
// cluster.
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
}

// Run is a scenario that was played to its end.
type Run struct {
	Result   *Result
	Metrics  *metrics.Metrics
	Series   *metrics.Series
	Faults   []error // of policies, in order
	Warnings []string
}
