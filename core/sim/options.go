package sim

import (
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// PolicySpec identifies a policy and its configuration.
type PolicySpec struct {
	Name   string         // name in the run
	Use    string         // name of a built-in policy, or any other name that the resolver accepts
	Config map[string]any // nil: none
	Grants []string
}

// Options holds the parameters of a run.
type Options struct {
	// Policy replaces the scenario's policy and those of its jobs; "" retains them.
	// It is the name of one of the file's variants, or a name that Resolve accepts.
	Policy string
	// Resolve returns a version of a policy.
	Resolve func(PolicySpec) (*policy.Version, error)
	// Grants are given to the policy of the field Policy.
	Grants []string
	// Ties breaks ties that no rule decides; the zero value breaks them by the
	// order of the file, else by ID.
	Ties tiebreak.Order
	// Workers is the maximum number of goroutines that search for victims; 0: one.
	Workers int
	// NoDomainSearch disables the search for the cheapest topology domain; see
	// scheduler.Config.
	NoDomainSearch bool
	// Timing measures decisions by the wall clock. Results then differ from run to
	// run.
	Timing bool
	// Explain adds Result.Decisions.
	Explain bool
	// WhatIf adds to each of Result.Decisions what would have spared its victims. It requires
	// Explain, and up to 64 evaluations for each victim after the run.
	WhatIf bool
	// Timeline is called with each event of the run, in order; it may be nil.
	Timeline func(timeline.Event)
	// Evaluated is called with each evaluation of a job, after its plan was committed; it
	// may be nil.
	Evaluated func(Evaluated)
	// Progress is called with the progress of the run from time to time; it may be nil.
	Progress func(Progress)
}

// An Evaluated is an evaluation with the state in which it was made.
type Evaluated struct {
	Now    int64 // Unix nanoseconds
	Before *state.Snapshot
	Report worker.Report
}

// Progress is the progress of a run.
type Progress struct {
	Now, Until        time.Duration // Until is 0 if the scenario has no end
	Steps, StepsTotal int
	Placed            int
}
