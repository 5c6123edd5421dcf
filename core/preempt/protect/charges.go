package protect

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// Charges count the evictions that budgets are charged with. They are a list rather
// than a map because a node's victims are under few budgets.
type Charges []Charge

// A Charge is a number of evictions under one budget.
type Charge struct {
	Budget int32 // position in the state's list
	Count  int
}

// Add charges a budget with n more evictions and returns their new number.
func (c *Charges) Add(budget int32, n int) int {
	for i := range *c {
		if (*c)[i].Budget == budget {
			(*c)[i].Count += n
			return (*c)[i].Count
		}
	}
	*c = append(*c, Charge{budget, n})
	return n
}

// Of returns the number of evictions that a budget is charged with.
func (c Charges) Of(budget int32) int {
	for i := range c {
		if c[i].Budget == budget {
			return c[i].Count
		}
	}
	return 0
}

// EachViolation evicts victims one after another, in the order of the list, and calls
// visit with the position of each one that overruns a disruption budget.
func EachViolation(view *state.View, now int64, victims []*model.Allocation, visit func(i int)) {
	if len(view.Budgets()) == 0 {
		return
	}
	var c Charges
	for i, v := range victims {
		if !v.Available() {
			continue // it costs its budgets nothing
		}
		overrun := false
		for _, at := range view.GroupBudgets(v.Group) {
			// Every budget is charged, even after one is overrun.
			overrun = c.Add(at, 1) > view.DisruptionsAllowed(at, now) || overrun
		}
		if overrun {
			visit(i)
		}
	}
}
