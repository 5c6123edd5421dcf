package simrun

import (
	"context"
	"errors"

	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/sim"
)

// Recorded is an evaluation with the calls of policies that it made.
type Recorded struct {
	sim.Evaluated
	Policies []string // names of the policies that were called, by position
	Calls    []certificate.Call
	Failed   error // of the first call that failed
}

// errVisited ends a run whose visitor has seen enough.
var errVisited = errors.New("the requested evaluation was visited")

// PlayRecorded plays a scenario and calls visit with each evaluation and its calls, until
// visit returns false. progress receives the progress of the run.
func PlayRecorded(ctx context.Context, f *ScenarioFile, played string, ties tiebreak.Order, resolve func(sim.PolicySpec) (*policy.Version, error), progress func(sim.Progress), visit func(*Recorded) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	log := &certificate.Log{}
	names := map[string]string{}
	_, err := sim.Play(ctx, f.File, sim.Options{
		Policy: played, Ties: ties, Workers: 1, Progress: progress,
		Resolve: func(spec sim.PolicySpec) (*policy.Version, error) {
			v, err := resolve(spec)
			if err != nil {
				return nil, err
			}
			v.AddRef()
			defer v.ReleaseRef()
			names[v.ID] = v.Name
			return v.Copy(log.RecordDescribed)
		},
		Evaluated: func(e sim.Evaluated) {
			versions, calls, failed := log.Take()
			if context.Cause(ctx) != nil {
				return
			}
			r := &Recorded{Evaluated: e, Calls: calls, Failed: failed}
			for _, id := range versions {
				r.Policies = append(r.Policies, names[id])
			}
			if !visit(r) {
				cancel(errVisited)
			}
		},
	})
	if errors.Is(context.Cause(ctx), errVisited) {
		return nil
	}
	return err
}
