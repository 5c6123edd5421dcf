package model

import "fmt"

// Algorithm is how nodes that have room are ranked.
type Algorithm string

// The ranking algorithms.
const (
	Binpack    Algorithm = "binpack" // fullest first
	SpreadRank Algorithm = "spread"  // emptiest first
)

// ParseAlgorithm accepts "", binpack and spread.
func ParseAlgorithm(s string) (Algorithm, error) {
	switch Algorithm(s) {
	case "", Binpack:
		return Binpack, nil
	case SpreadRank:
		return SpreadRank, nil
	}
	return "", fmt.Errorf("unknown algorithm %q: want binpack or spread", s)
}

// SchedulerConfig is what operators set for the whole cluster. It lives in the
// state, so every worker that plans on one snapshot uses the same one.
type SchedulerConfig struct {
	Algorithm     Algorithm
	Preemption    [EvalTypes]bool // by JobType
	PriorityDelta *int32          // the base gap; nil: the policy's own
	Policy        string          // name of the active policy
	OnFault       string          // OnFaultDeny (also where empty) or OnFaultDefault
	BrokerPaused  bool            // evaluations are kept and none is handed out
	Coalescing    *bool           // one evaluation of a job is kept for many; nil: on
	Shedding      *bool           // what is superseded is cancelled; nil: on

	ModifyIndex uint64
}

// PriorityClass is a named priority.
type PriorityClass struct {
	Name          string
	Value         int32
	GlobalDefault bool
	NeverPreempts bool
	Description   string
}
