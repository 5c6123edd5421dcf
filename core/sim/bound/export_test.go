package bound

import "github.com/cede-scheduler/cede/core/sim"

// BoundOf bounds one decision; nil if it is none.
func (r *Recorder) BoundOf(e sim.Evaluated) *Regret {
	if r.costs == nil {
		r.costs = NewCosts(e.Before)
	}
	d := NewDecision(e)
	if d == nil {
		return nil
	}
	x := r.examine(d)
	return &x
}

// Bound returns the bound on placing certain numbers of instances, and the dropped rules.
func Bound(e sim.Evaluated, counts []int, limit int64) (Result, []string) {
	problem, dropped := Build(describe(e), counts, NewCosts(e.Before))
	return Solve(problem, limit), dropped
}
