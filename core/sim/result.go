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
	Bindings      []struct{}  `json:"bindings"`
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

// Unplaced counts what was wanted and not placed at the end.
type Unplaced struct {
	Job    string `json:"job"`
	Group  string `json:"group"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

// Evicted is a victim.
type Evicted struct {
	At             At     `json:"at"`
	Alloc          string `json:"alloc"`
	By             string `json:"by"`
	Node           string `json:"node"`
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
