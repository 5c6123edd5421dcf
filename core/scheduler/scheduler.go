package scheduler

import (
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/scheduler/binding"
	"github.com/cede-scheduler/cede/core/scheduler/placement"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// Config configures a Scheduler.
type Config struct {
	Policies Policies
	// NewID returns the ID of a new allocation; default: model.AllocName.
	NewID func(g *model.Group, index, incarnation int) string
	// Ties breaks ties; zero value: by ID.
	Ties tiebreak.Order
	// Workers is the number of goroutines that search for victims; 0 or 1: one.
	Workers int
	// Weights of namespaces; 1 if absent.
	Weights map[string]float64
	// Forget disables the cache of failed groups, for tests that compare.
	Forget bool
	// Observe receives every outcome before its plan is submitted, on the goroutine
	// of Process. If it is nil, calls of policies are not recorded.
	Observe func(Decision)
}

// Policies provides the set of policies for an evaluation: one that never changes,
// or the active one.
type Policies interface {
	// Pin returns the set, which stays loaded until its Unpin.
	Pin() *policy.Set
}

// A Scheduler plans evaluations one after another.
type Scheduler struct {
	config    Config
	workspace *placement.Workspace
	buffers   reconcile.Buffers
	calls     callLog
}

// New returns a Scheduler.
func New(config Config) *Scheduler {
	if config.NewID == nil {
		config.NewID = model.AllocName
	}
	s := &Scheduler{config: config}
	options := placement.Options{
		NewID: config.NewID, TieOrder: config.Ties, Workers: config.Workers, Weights: config.Weights, NoFailureCache: config.Forget,
	}
	if config.Observe != nil {
		options.OnCall = s.calls.add
	}
	s.workspace = placement.NewWorkspace(options)
	return s
}

// Process plans one evaluation against a snapshot at a time in Unix nanoseconds. It
// returns an error if the evaluation cannot be planned at all, such as when its job
// names a policy that is not loaded. A fault of a policy is no such error: see
// Outcome.Fault.
func (s *Scheduler) Process(eval *model.Evaluation, snap *state.Snapshot, now int64) (*Outcome, error) {
	policies := s.config.Policies.Pin()
	defer policies.Unpin()
	var out *Outcome
	var err error
	if eval.Type == model.JobBinding {
		out, err = s.planBinding(policies, eval, snap, now)
	} else {
		out, err = s.planJob(policies, eval, snap, now)
	}
	calls := s.calls.drain() // also after an error, so that the next evaluation starts empty
	if err == nil && s.config.Observe != nil {
		out.Calls = calls
		s.config.Observe(Decision{Eval: eval, Snap: snap, Outcome: out})
	}
	return out, err
}

// Rejected must be called if a plan for the job was not committed in full: cached
// failures of its groups assumed that it would be.
func (s *Scheduler) Rejected(job *model.Job) { s.workspace.ForgetFailures(job) }

func (s *Scheduler) planBinding(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*Outcome, error) {
	r, err := binding.Plan(&binding.Input{
		Policies: policies, Eval: eval, Snapshot: snap, Now: now,
		TieOrder: s.config.Ties, OnCall: s.workspace.Options.OnCall,
	})
	if err != nil {
		return nil, err
	}
	out := &Outcome{Plan: r.Plan, BlockedNodes: r.Locations, RecheckAt: r.RecheckAt, Fault: r.Fault, Version: r.Version}
	if r.Waiting != nil {
		out.Failed, out.Queued = map[string]*model.Explanation{eval.JobID: r.Waiting}, map[string]int{eval.JobID: r.Queued}
	}
	return out, nil
}

// planJob plans an evaluation of a job. If the policy is at fault, the evaluation is
// planned again without it.
func (s *Scheduler) planJob(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*Outcome, error) {
	a, err := s.newAttempt(policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	err = a.run()
	version := a.e.Policy.Version
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		if a.e.Policy.Consulted {
			version.Breaker.RecordFault(now, fault)
		}
		a, err = s.planAgain(a, version, fault)
	} else if a.e.Policy.Consulted {
		version.Breaker.RecordSuccess()
	}
	if err != nil {
		return nil, err
	}
	return a.finish(), nil
}

// planAgain plans an evaluation without the policy version that was at fault: with
// the default policy if the operator chose so and it succeeds, else without evictions.
func (s *Scheduler) planAgain(failed *attempt, version *policy.Version, fault *policy.Error) (*attempt, error) {
	x := failed.e
	if proposal.FallsBack(version, x.State.Base.Config()) {
		a, err := s.newAttempt(x.Policy.Set, x.Eval, x.State.Base, x.Now)
		if err == nil {
			a.e.Policy.Version, a.e.Policy.Fault = x.Policy.Set.Default(), fault
			err = a.run()
		}
		if _, again := errors.AsType[*policy.Error](err); !again {
			version.RecordFallback()
			return a, err
		}
	}
	a, err := s.newAttempt(x.Policy.Set, x.Eval, x.State.Base, x.Now)
	if err != nil {
		return nil, err
	}
	a.e.ForbidPreemption()
	a.e.Policy.Fault = fault
	return a, a.run()
}

// An attempt is one pass over an evaluation of a job.
type attempt struct {
	e *placement.Evaluation
	r *reconcile.Reconciler
}

func (s *Scheduler) newAttempt(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*attempt, error) {
	e, err := placement.NewEvaluation(s.workspace, policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	return &attempt{e, reconcile.New(snap, eval.JobKey(), e.Job, now, e.Plan, &s.buffers)}, nil
}

// run plans the evaluation. It returns a *policy.Error if a policy is at fault.
func (a *attempt) run() error {
	job := a.e.Job
	if job == nil || job.Stopped {
		a.r.StopAll()
		return nil
	}
	a.e.Begin(a.r.Allocs())
	defer a.e.Close()
	a.r.StopRemovedGroups()
	if job.Type.PerNode() {
		return a.placeSystem()
	}
	return a.placeCounted()
}

// finish returns the outcome of the attempt.
func (a *attempt) finish() *Outcome {
	e, u := a.e, &a.e.Unplaced
	base := e.State.Base
	plan := &model.Plan{
		EvalID: e.Eval.ID, Job: e.Eval.JobKey(), Priority: e.Eval.Priority,
		SnapshotIndex: base.Index(), Now: e.Now, Groups: e.Plan.Groups(),
	}
	if e.Job != nil {
		plan.Priority = e.Job.Priority
	}
	if u.IsEmpty() {
		u.RecheckAt = 0 // the policy has nothing left to decide
	}
	u.RecheckBy(a.r.RecheckAt())
	return &Outcome{
		Plan: plan, Failed: u.Failed, Queued: u.Queued,
		Classes: u.Classes, Escaped: u.Escaped, BlockedNodes: u.BlockedNodes,
		RecheckAt: u.RecheckAt, Retries: a.r.Retries(), SearchesCut: u.SearchesCut,
		Fault: e.Policy.Fault, Version: e.Policy.Version,
	}
}

// CheckNodes returns, by node ID, whether each node can take one more instance of a
// group of the evaluation's job without evictions, by the rules by which Process
// places. It plans nothing and calls no policy.
func (s *Scheduler) CheckNodes(eval *model.Evaluation, group string, snap *state.Snapshot, now int64) (map[string]placement.NodeResult, error) {
	policies := s.config.Policies.Pin()
	defer policies.Unpin()
	a, err := s.newAttempt(policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	if a.e.Job == nil || a.e.Job.Group(group) == nil {
		return nil, fmt.Errorf("cannot check nodes: job %s has no group %q", eval.JobKey(), group)
	}
	a.e.ForbidPreemption()
	a.e.Begin(a.r.Allocs())
	defer a.e.Close()
	return a.e.CheckNodes(a.e.Job.Group(group)), nil
}
