package binding

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// An Input is one evaluation of a binding with the state to plan against.
type Input struct {
	Policies *policy.Set
	Eval     *model.Evaluation
	Snapshot *state.Snapshot
	Now      int64 // Unix nanoseconds
	TieOrder tiebreak.Order
	OnCall   func(policy.Call) // receives calls of policy hooks; nil: not recorded
}

// A Result is the plan of an evaluation and the replicas that remain unassigned. It
// refers to the state of the input and is valid as long as that.
type Result struct {
	Plan *model.Plan
	// Waiting explains why replicas are not assigned; nil: all are.
	Waiting *model.Explanation
	Queued  int // replicas that are not assigned
	// Locations are the clusters that could unblock the binding, as
	// model.ClusterLocation.
	Locations []string
	RecheckAt int64 // when to evaluate again although nothing changes; 0: never
	// Fault is the error of the policy, if it was at fault; nil: it was not.
	Fault error
	// Version is the policy that decided; nil: the binding was removed.
	Version *policy.Version
}

// Plan plans an evaluation. If the policy is at fault, it plans again with the default
// policy or without evictions, as configured. It returns an error if the configured
// policy is not loaded. The fault is recorded with the breaker of the version only if
// the version was called: a breaker that is open must not count its own refusals.
func Plan(in *Input) (*Result, error) {
	e, err := newEvaluation(in)
	if err != nil {
		return nil, err
	}
	err = e.process()
	// An error other than a policy fault is returned together with the unfinished result.
	fault, ok := errors.AsType[*policy.Error](err)
	if !ok {
		if err == nil && e.consulted {
			e.version.Breaker.RecordSuccess()
		}
		return e.finish(), err
	}
	version := e.version
	if e.consulted {
		version.Breaker.RecordFault(in.Now, fault)
	}
	if proposal.FallsBack(version, in.Snapshot.Config()) {
		if e, err = newEvaluation(in); err != nil {
			return nil, err
		}
		e.version, e.result.Fault = in.Policies.Default(), fault
		err = e.process()
		if _, again := errors.AsType[*policy.Error](err); !again {
			version.RecordFallback()
			return e.finish(), err
		}
	}
	if e, err = newEvaluation(in); err != nil {
		return nil, err
	}
	e.preempts, e.result.Fault = false, fault
	err = e.process()
	return e.finish(), err
}

// MayPreempt reports whether evaluations of a binding may evict. Cluster-scoped
// bindings and those without a request gain nothing from evictions.
func MayPreempt(config *model.SchedulerConfig, b *model.Binding) bool {
	return config.BindingsPreempt() && b.Preempts && !b.ClusterScoped && !b.IsBestEffort()
}

// An evaluation is one attempt to plan. It is used once: a plan without the policy
// starts from another one.
type evaluation struct {
	*Input
	binding   *model.Binding // nil: it was removed
	version   *policy.Version
	consulted bool // the version was called for victims
	preempts  bool

	view    view
	layout  layout
	short   []*model.Assignment // duplicated assignments that were shrunk
	changes changes
	result  Result
}

// newEvaluation returns an error only if the policy is not loaded. A binding that was
// removed needs no policy.
func newEvaluation(in *Input) (*evaluation, error) {
	b := in.Snapshot.Binding(in.Eval.JobKey())
	e := &evaluation{Input: in, binding: b}
	e.changes = changes{binding: b, evalID: in.Eval.ID, index: in.Snapshot.Index(), now: in.Now}
	if b == nil {
		return e, nil
	}
	version, err := in.Policies.Select("", in.Snapshot.Config().Policy)
	if err != nil {
		return nil, fmt.Errorf("binding %s: %w", b.Key(), err)
	}
	e.version = version
	e.preempts = MayPreempt(in.Snapshot.Config(), b)
	e.view = view{snap: in.Snapshot, binding: b, now: in.Now}
	e.layout = layout{view: &e.view, binding: b, on: map[string]int{}}
	return e, nil
}

// process fills the changes and the result. It returns a *policy.Error if the policy is
// at fault; the changes are then incomplete and must be discarded.
func (e *evaluation) process() error {
	assigned := e.Snapshot.BindingAssignments(e.Eval.JobKey())
	if e.binding == nil || e.binding.Stopped {
		for _, a := range assigned {
			if a.Live() {
				e.changes.withdraw(a, "the binding was stopped")
			}
		}
		e.changes.releaseClaims(e.Snapshot.ClaimIDs(e.Eval.JobKey()))
		return nil
	}
	e.reconcile(assigned)
	for c := range e.Snapshot.Clusters() {
		if !c.Down && e.binding.IsFeasible(c) {
			e.layout.feasible = append(e.layout.feasible, c)
		}
	}
	var err error
	if e.binding.Duplicated {
		err = e.placeDuplicated()
	} else {
		err = e.placeDivided()
	}
	e.changes.releaseClaims(e.Snapshot.ClaimIDs(e.Eval.JobKey()))
	return err
}

// reconcile withdraws assignments that do not match the binding and records the others.
// The layout then holds the replicas that remain, on which the division builds.
func (e *evaluation) reconcile(assigned []*model.Assignment) {
	b := e.binding
	for _, a := range assigned {
		cluster := e.Snapshot.Cluster(a.ClusterID)
		switch {
		case !a.CountsAsPlaced():
		case a.Done: // its replicas have completed and are not placed again
			e.layout.on[a.ClusterID] += a.Replicas
		case a.Vec != b.TotalAsk(a.Replicas):
			e.changes.withdraw(a, "the binding was changed")
		case cluster != nil && !b.IsFeasible(cluster):
			e.changes.withdraw(a, "the cluster is excluded by "+b.InfeasibleReason(cluster))
		case b.Duplicated && a.Replicas != b.Replicas:
			e.resize(a, cluster)
		default:
			e.retain(a)
		}
	}
}

// retain keeps an assignment.
func (e *evaluation) retain(a *model.Assignment) {
	e.changes.live = append(e.changes.live, a)
	e.layout.on[a.ClusterID] += a.Replicas
}

// wait records that replicas are not assigned and returns the explanation of why
// replicas do not fit, which the caller may extend.
func (e *evaluation) wait(replicas, queued int) *model.Explanation {
	why := explain(&e.view, e.layout.on, replicas, e.changes.assigns)
	e.result.Waiting, e.result.Queued = why, queued
	// The location without an ID stands for clusters that may join.
	e.result.Locations = []string{model.ClusterLocation("")}
	for c := range e.Snapshot.Clusters() {
		if e.binding.IsFeasible(c) {
			e.result.Locations = append(e.result.Locations, model.ClusterLocation(c.ID))
		}
	}
	return why
}

// inTieOrder sorts clusters. It changes the slice in place, so that equal clusters are
// not always tried in the order of their IDs.
func (e *evaluation) inTieOrder(clusters []*model.Cluster) []*model.Cluster {
	slices.SortFunc(clusters, func(x, y *model.Cluster) int { return e.TieOrder.Compare(x.ID, y.ID) })
	return clusters
}

// finish returns the result with the plan. Its priority is the current one of the
// binding: the planner rejects a plan with another.
func (e *evaluation) finish() *Result {
	plan := &model.Plan{
		EvalID: e.Eval.ID, Job: e.Eval.JobKey(), Priority: e.Eval.Priority, SnapshotIndex: e.Snapshot.Index(), Now: e.Now,
	}
	if e.binding != nil {
		plan.Priority = e.binding.Priority
	}
	if g := e.changes.group; g.HasBindingChanges() || len(g.Claims) > 0 {
		plan.Groups = []model.CommitGroup{g}
	}
	e.result.Plan, e.result.Version = plan, e.version
	return &e.result
}
