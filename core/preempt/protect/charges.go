package protect

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// EachViolation calls tell for each victim whose eviction overruns a disruption budget
// when they go one after the other at a time, with its position.
func EachViolation(view *state.View, now int64, victims []*model.Allocation, tell func(i int)) {
	if len(view.Budgets()) == 0 {
		return
	}
	var c Charges
	for i, v := range victims {
		if !v.Available() {
			continue
		}
		overrun := false
		for _, at := range view.GroupBudgets(v.Group) {
			overrun = c.Add(at, 1) > view.DisruptionsAllowed(at, now) || overrun
		}
		if overrun {
			tell(i)
		}
	}
}

// Charges counts what is taken from budgets. A node's victims are under few.
type Charges []Charge

type Charge struct {
	Budget int32
	Count  int
}

// add counts n more and tells how many that makes.
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

// of is how many are counted.
func (c Charges) Of(budget int32) int {
	for i := range c {
		if c[i].Budget == budget {
			return c[i].Count
		}
	}
	return 0
}
