package bound

import (
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// RunBounds are lower bounds on a whole run.
type RunBounds struct {
	// Unplaced is a lower bound on the metric unplaced of every schedule.
	Unplaced int `json:"unplaced"`
	// UnplacedWeight is the metric unplacedWeight of the run, and UnplacedWeightBound a lower bound on
	// that of every schedule.
	UnplacedWeight      int `json:"unplacedWeight"`
	UnplacedWeightBound int `json:"unplacedWeightBound"`
	// LostWork is a lower bound on the lost work of every schedule with the service of the
	// run, in nanoseconds of the whole cluster.
	LostWork int64 `json:"lostWork"`
}

// hour is one hour in nanoseconds.
const hour = 3600 * 1e9

// Finish adds the bounds on the whole run and stores the metrics of the run. It returns an error if
// the scenario is invalid.
func (r *Recorder) Finish(f *scenario.File, run *sim.Run) (*Report, error) {
	resolved, err := scenario.Resolve(f)
	if err != nil {
		return nil, err
	}
	r.report.Run = &RunBounds{
		Unplaced: UnplacedBound(resolved), UnplacedWeight: unplacedWeight(resolved, run.Result.Unplaced),
		UnplacedWeightBound: UnplacedWeightBound(resolved), LostWork: LostWorkBound(resolved, run.Result),
	}
	run.Metrics.Optimality = r.report.metrics()
	return &r.report, nil
}

// metrics returns the figures of the report for summaries.
func (p *Report) metrics() metrics.Optimality {
	hours := func(cost int64) *float64 { return new(metrics.Round(float64(cost) / hour)) }
	m := metrics.Optimality{
		BoundedDecisions: new(p.Decisions), MissedPlacements: new(p.Missed), DecisionLoss: hours(p.Cost), DecisionLossBound: hours(p.Lower),
		DecisionRegret: hours(p.Regret), UnplacedBound: new(p.Run.Unplaced), UnplacedWeight: new(p.Run.UnplacedWeight),
		UnplacedWeightBound: new(p.Run.UnplacedWeightBound), LostWorkBound: hours(p.Run.LostWork),
	}
	if p.Decisions > 0 {
		m.ProvenOptimal = new(metrics.Round(float64(p.Optimal) / float64(p.Decisions)))
	}
	if p.Cost > 0 {
		m.OptimalityGap = new(metrics.Round(float64(p.Cost-p.Lower) / float64(p.Cost)))
	}
	return m
}
