package gpushare

import (
	"fmt"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	core "github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
)

// A cede places tasks by the scheduler and the applier of a server, with the algorithm
// binpack and without preemption.
type cede struct {
	store     *state.Store
	scheduler *core.Scheduler
	applier   *planner.Applier
	policies  *policy.Set
	tasks     int
}

func newCede(t *Trace) (*cede, error) {
	set, err := builtin.DefaultSet()
	if err != nil {
		return nil, err
	}
	c := &cede{store: state.New(), policies: set, scheduler: core.New(core.Config{Policies: set})}
	c.applier = planner.NewApplier(planner.Config{
		Store: c.store, Committer: planner.DirectCommitter{Store: c.store}, PlacementVerifier: &feasible.Verifier{},
	})
	txn := c.begin()
	defer txn.Abort()
	txn.ConfigWriter().Set(&model.SchedulerConfig{Algorithm: model.Binpack})
	for _, n := range t.nodes {
		own := *n // the state compiles its nodes
		if err := txn.NodeWriter().Upsert(&own); err != nil {
			return nil, err
		}
	}
	txn.Commit()
	return c, nil
}

func (c *cede) begin() *state.Txn { return c.store.Begin(c.store.Snapshot().Index() + 1) }

// place implements placing.
func (c *cede) place(task *model.Job) (bool, error) {
	c.tasks++
	group := *task.Groups[0]
	job := *task
	job.ID, job.Groups = fmt.Sprintf("t%d", c.tasks), []*model.Group{&group}
	txn := c.begin()
	defer txn.Abort()
	if err := txn.JobWriter().Upsert(&job); err != nil {
		return false, err
	}
	eval := &model.Evaluation{
		ID: "e" + job.ID, Namespace: job.Namespace, JobID: job.ID, Type: job.Type, Priority: job.Priority, TriggeredBy: model.TriggerJobRegister,
	}
	outcome, err := c.scheduler.Process(eval, txn.Commit(), 0)
	if err != nil || len(outcome.Failed) > 0 {
		return false, err
	}
	result, err := c.applier.ApplyOne(outcome.Plan)
	if err != nil {
		return false, err
	}
	if !result.FullyCommitted() {
		return false, fmt.Errorf("the plan of task %s was rejected", job.ID)
	}
	return true, nil
}
