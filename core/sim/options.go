package sim

import (
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
)

// PolicySpec names a policy and how it is configured.
type PolicySpec struct {
	Name   string         // under which the run knows it
	Use    string         // a built-in's name, or whatever the resolver knows
	Config map[string]any // nil: none
	Grants []string
}

// Options say how a scenario is played.
type Options struct {
	// Policy replaces the scenario's policy and those of its jobs; "" keeps them.
	// It is the name of one of the file's variants, or what Resolve knows.
	Policy string
	// Resolve makes a version of a policy.
	Resolve func(PolicySpec) (*policy.Version, error)
	// Grants are given to the policy that Policy names.
	Grants []string
	// Ties orders what no rule decides; zero: by id.
	Ties tiebreak.Order
	// Workers is how many goroutines may search for victims; 0: one.
	Workers int
	// Timing measures decisions by the wall clock. Results are then no longer
	// the same from run to run.
	Timing bool
	// Progress is told how far the run is, now and then; nil: nobody is.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Now, Until          time.Duration // Until is 0 when the scenario names no end
	Steps, StepsTotal   int
	Placed, Evaluations int
}
