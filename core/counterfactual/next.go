package counterfactual

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// A Forecast lists the victims that would be next on a node, for jobs of rising priority.
type Forecast struct {
	Resource string // that the hypothetical job requests, one unit more than is free
	Amount   int64
	Levels   []Level // ascending
	// Reason states why nothing can be evicted; "": something can.
	Reason      string
	Evaluations int // that were executed
}

// A Level holds the victims of a job from a priority on. Priorities between two levels have the
// result of the lower one as far as they were tried.
type Level struct {
	From    int32
	Victims []Ref // ascending by ID; empty: nothing
}

// NextOnNode returns the victims that would be next on a node: it makes the decision about a
// hypothetical job that runs only there and needs one unit more than is free, for every
// priority at which the result can change, at most MaxEvaluations. Eval of the case is not
// used. It returns an error if the policy fails.
func NextOnNode(ctx context.Context, c Case, nodeID string) (*Forecast, error) {
	f := &Forecast{}
	node := c.Snap.Node(nodeID)
	kind, enabled := preemptingType(c.Snap.Config())
	switch {
	case node == nil:
		return nil, fmt.Errorf("unknown node %s", nodeID)
	case !enabled:
		f.Reason = "preemption is disabled for jobs of every type"
	case !node.IsEligible():
		f.Reason = "the node receives no allocations"
	}
	if f.Reason != "" {
		return f, nil
	}
	if f.Resource, f.Amount = moreThanFree(c.Snap, nodeID, c.Now); f.Resource == "" {
		f.Reason = "the allocations of the node hold neither processor nor memory"
		return f, nil
	}
	s := lookahead.NewSchedulerWith(scheduler.Config{Policies: c.Policies, Ties: c.Ties, Forget: true}, c.Plays)
	for _, priority := range thresholds(c.Snap, nodeID) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		victims, err := hypothetical(s, &c, f, kind, node, priority)
		if err != nil {
			return nil, err
		}
		f.Evaluations++
		if last := len(f.Levels) - 1; last < 0 || !slices.Equal(f.Levels[last].Victims, victims) {
			f.Levels = append(f.Levels, Level{From: priority, Victims: victims})
		}
	}
	if !slices.ContainsFunc(f.Levels, func(l Level) bool { return len(l.Victims) > 0 }) {
		f.Levels, f.Reason = nil, "no priority that was tried may evict anything there"
	}
	return f, nil
}

// preemptingType returns the first type of jobs that may preempt.
func preemptingType(config *model.SchedulerConfig) (model.JobType, bool) {
	for _, t := range []model.JobType{model.JobService, model.JobBatch, model.JobSystem, model.JobSysBatch} {
		if config.Preemption[t] {
			return t, true
		}
	}
	return 0, false
}

// moreThanFree returns an amount that the node cannot offer without an eviction, of the
// first resource that allocations on it hold.
func moreThanFree(snap *state.Snapshot, nodeID string, now int64) (resource string, amount int64) {
	held := map[string]bool{}
	for _, a := range snap.AppendNodeAllocs(nil, nodeID) {
		for name, n := range a.Group.Resources {
			held[name] = held[name] || n > 0 && a.Live()
		}
	}
	pos, _ := snap.Position(nodeID)
	var scratch model.Vector
	free := snap.FreeCapacityFor(pos, model.JobKey{}, math.MaxInt32, now, &scratch)
	for d, name := range map[int]string{model.CPU: "cpu", model.Memory: "memory"} {
		if held[name] && (resource == "" || name == "cpu") {
			resource, amount = name, max(0, free.Free[d*free.Stride])+1
		}
	}
	return resource, amount
}

// thresholds returns the priorities at which the result can change: just above each
// priority on the node, and further by the base gap, ascending.
func thresholds(snap *state.Snapshot, nodeID string) []int32 {
	gaps := []int64{1, 10}
	if delta := snap.Config().PriorityDelta; delta != nil {
		gaps[1] = int64(*delta)
	}
	set := map[int32]bool{}
	for _, a := range snap.AppendNodeAllocs(nil, nodeID) {
		for _, gap := range gaps {
			if p := int64(a.Job.Priority) + gap; a.Live() && p <= math.MaxInt32 {
				set[int32(p)] = true
			}
		}
	}
	list := slices.Sorted(maps.Keys(set))
	return list[:min(len(list), MaxEvaluations)]
}

// hypothetical returns the victims of a job that does not exist.
func hypothetical(s *scheduler.Scheduler, c *Case, f *Forecast, kind model.JobType, node *model.Node, priority int32) ([]Ref, error) {
	job := &model.Job{
		Namespace: model.DefaultNamespace, ID: "forecast", Type: kind, Priority: priority, SubmitTime: c.Now,
		Groups: []*model.Group{{
			Name: "g", Count: 1, Resources: model.Resources{f.Resource: f.Amount}, MaxParallelEvictions: 1,
			Constraints: []model.Constraint{{Attribute: model.AttributeNodeID, Operator: model.OpEqual, Value: node.ID}},
			Tolerations: []model.Toleration{{Operator: model.TolerationExists}},
		}},
	}
	for c.Snap.Job(job.Key()) != nil || c.Snap.Binding(job.Key()) != nil {
		job.ID += "-"
	}
	fork := c.Snap.Fork(c.Snap.Index() + 1)
	if err := fork.JobWriter().Upsert(job); err != nil {
		return nil, err
	}
	eval := &model.Evaluation{ID: job.ID, Namespace: job.Namespace, JobID: job.ID, Type: kind, Priority: priority, TriggeredBy: model.TriggerJobRegister}
	out, err := s.Process(eval, fork.Snapshot(), c.Now)
	if err != nil {
		return nil, err
	}
	if out.Fault != nil {
		return nil, out.Fault
	}
	var victims []Ref
	for _, e := range outcomeOf(out).evicted {
		victims = append(victims, refOf(c.Snap, e.ID))
	}
	return victims, nil
}
