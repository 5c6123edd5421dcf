package scheduler

import (
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// An Outcome is the result of an evaluation.
type Outcome struct {
	Plan *model.Plan
	// Failed holds, by group, why instances could not be placed; of a binding, by its ID.
	Failed map[string]*model.Explanation
	// Queued holds the numbers of those instances.
	Queued map[string]int
	// Classes, Escaped and BlockedNodes list the changes that could unblock the evaluation:
	// of node classes by key, of any class, or certain nodes (of a binding: cluster locations).
	Classes      map[uint64]bool
	Escaped      bool
	BlockedNodes []string
	// RecheckAt is when to evaluate again although nothing changes, in Unix
	// nanoseconds: a policy requested it, an allocation is expelled or lost, or a
	// failed one is replaced. 0: never.
	RecheckAt int64
	// Retries are instances that failed several times in a row and are replaced later,
	// ascending by group and index.
	Retries []reconcile.Retry
	// SearchesCut is the number of searches, for gangs or under strict budgets, that
	// reached a bound before they had tried everything.
	SearchesCut int
	// Observed holds the decisions to evict that were made and are not in the plan, because
	// preemption is only observed for the type of the job.
	Observed []*model.Observation
	// Fault is the error of the policy if it was at fault; nil: it was not. The plan
	// then has no evictions, unless the default policy decided instead, or every call at fault
	// was for evictions to which moves are an alternative.
	Fault error
	// Version decided about evictions; nil: the job was removed.
	Version *policy.Version
	// Calls are the calls of hooks of all versions. They are recorded only if
	// Config.Observe is set.
	Calls []policy.Call
}

// Placed reports whether everything that the job requests exists or is in the plan.
func (o *Outcome) Placed() bool { return len(o.Failed) == 0 }

// A Decision is an outcome with its inputs. For the same evaluation, snapshot and
// Outcome.Plan.Now, an equal Scheduler returns the same outcome.
type Decision struct {
	Eval    *model.Evaluation
	Snap    *state.Snapshot
	Outcome *Outcome
}

// A callLog collects the calls of policies during an evaluation. It is safe for
// concurrent use, because several goroutines may search.
type callLog struct {
	mu   sync.Mutex
	list []policy.Call
}

func (c *callLog) add(call policy.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, call)
}

// drain returns the calls and empties the log.
func (c *callLog) drain() []policy.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}
