package scheduler

import (
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
)

// Decision is an outcome with what it was made of: the same scheduler plans the
// same evaluation alike on the same snapshot at Outcome.Plan.Now.
type Decision struct {
	Eval    *model.Evaluation
	Snap    *state.Snapshot
	Outcome *Outcome
}

// calls gathers the calls of policies while an evaluation is planned, on several
// goroutines where several search.
type calls struct {
	mu   sync.Mutex
	list []policy.Call
}

func (c *calls) add(call policy.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call)
}

// take hands over what was gathered.
func (c *calls) take() []policy.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}
