package scheduler

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// An Instance selects one more instance of a group of an evaluation's job.
type Instance struct {
	Group string
	// Nodes are the nodes that may take the instance and lose allocations for it.
	Nodes *state.NodeSet
	// Since is when the instance began to wait, in Unix nanoseconds.
	Since int64
}

// ProcessInstance plans one instance in addition to the allocations of the job, by the
// rules by which Process places. It does not compare the job with its allocations, and
// explains no failure: if the plan is empty, none of the nodes can take the instance.
// The cost depends on the nodes of the instance, apart from rules that concern all
// nodes, such as spread.
func (s *Scheduler) ProcessInstance(eval *model.Evaluation, instance Instance, snap *state.Snapshot, now int64) (*Outcome, error) {
	job := snap.Job(eval.JobKey())
	if job == nil || job.Group(instance.Group) == nil {
		return nil, fmt.Errorf("cannot place an instance: job %s has no group %q", eval.JobKey(), instance.Group)
	}
	return s.process(eval, snap, now, &instance)
}

// placeInstance places the one instance of the attempt.
func (a *attempt) placeInstance() error {
	p := a.e.NewLocalPlacer(a.e.Job.Group(a.instance.Group), a.instance.Nodes)
	defer p.Close()
	p.WaitingSince = a.instance.Since
	_, err := p.Place(reconcile.Missing{Since: a.instance.Since}, false)
	return err
}
