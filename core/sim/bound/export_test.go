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

// Exceeding returns the bound on the weight of items, each an amount and a weight, that a capacity
// does not hold.
func Exceeding(list [][2]int64, capacity int64) int64 {
	items := make([]item, len(list))
	for i, x := range list {
		items[i] = item{x[0], x[1]}
	}
	return exceeding(items, capacity)
}
