package scheduler

import (
	"cmp"
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
	// Forget disables the cache of failed groups, for tests that compare.
	Forget bool
	// Observe receives every outcome before its plan is submitted, on the goroutine
	// of Process. If it is nil, calls of policies are not recorded.
	Observe func(Decision)
	// Explain adds the reasons of evictions to plans, as CommitGroup.Choices.
	Explain bool
	// NoDomainSearch lets groups that share a topology domain use that of their first instance,
	// if it suffices. Comparisons measure the search for the cheapest domain with it.
	NoDomainSearch bool
	// Player plays plans with evictions, for policies that read outlooks; nil: none is played.
	// lookahead.NewScheduler sets it.
	Player placement.Player
	// Hypothetical leaves the circuit breakers of policies as they are: the states that are
	// planned on, and their times, are only played.
	Hypothetical bool
}

// Policies provides the set of policies for an evaluation: one that never changes,
// or the active one.
type Policies interface {
	// Pin returns the set, which stays loaded until its Unpin.
	Pin() *policy.Set
}

// A Scheduler plans evaluations one after another. It is not safe for concurrent use:
// its memory is reused from one evaluation to the next. A server has one for each
// worker.
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
		NewID: config.NewID, TieOrder: config.Ties, Workers: config.Workers, NoFailureCache: config.Forget,
		Explain: config.Explain, Player: config.Player, NoDomainSearch: config.NoDomainSearch,
	}
	if config.Observe != nil {
		options.OnCall = s.calls.add
	}
	s.workspace = placement.NewWorkspace(options)
	return s
}

// Process plans one evaluation against a snapshot at a time in Unix nanoseconds. It
// returns an error if the evaluation cannot be planned at all, such as when its job
// names a policy that is not loaded. It does not return the fault of a policy: see
// Outcome.Fault. The outcome belongs to the caller.
func (s *Scheduler) Process(eval *model.Evaluation, snap *state.Snapshot, now int64) (*Outcome, error) {
	return s.process(eval, snap, now, nil)
}

func (s *Scheduler) process(eval *model.Evaluation, snap *state.Snapshot, now int64, instance *Instance) (*Outcome, error) {
	policies := s.config.Policies.Pin()
	defer policies.Unpin()
	var out *Outcome
	var err error
	if eval.Type == model.JobBinding {
		out, err = s.planBinding(policies, eval, snap, now)
	} else {
		out, err = s.planJob(policies, eval, snap, now, instance)
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

// planBinding plans an evaluation of a binding. Its explanation takes the place of that
// of a group.
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
func (s *Scheduler) planJob(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64, instance *Instance) (*Outcome, error) {
	a, err := s.newAttempt(policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	a.instance = instance
	err = a.run()
	version := a.e.Policy.Version
	fault, ok := errors.AsType[*policy.Error](err)
	if !s.config.Hypothetical {
		a.recordUse(cmp.Or(fault, a.e.Policy.Ignored))
	}
	if ok {
		a, err = s.planAgain(a, version, fault)
	}
	if err != nil {
		return nil, err
	}
	out := a.finish()
	if instance == nil && !out.Placed() && !s.config.Hypothetical && placement.Observes(snap, a.e.Job) {
		if err := s.observe(policies, eval, snap, now, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// planAgain plans an evaluation without the policy version that was at fault: with the
// default policy if the operator chose so and it succeeds, else without evictions. It
// returns an error only if that attempt fails for another reason than the policy.
func (s *Scheduler) planAgain(failed *attempt, version *policy.Version, fault *policy.Error) (*attempt, error) {
	x := failed.e
	if proposal.FallsBack(version, x.State.Base.Config()) {
		a, err := s.newAttempt(x.Policy.Set, x.Eval, x.State.Base, x.Now)
		if err == nil {
			a.instance, a.e.Policy.Version, a.e.Policy.Fault = failed.instance, x.Policy.Set.Default(), fault
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
	a.instance, a.e.Policy.Fault = failed.instance, fault
	return a, a.run()
}

// An attempt is one pass over an evaluation of a job. A second attempt starts from the
// same snapshot, so nothing of the first remains.
type attempt struct {
	e *placement.Evaluation
	r *reconcile.Reconciler
	// instance is the only instance to be planned; nil: all that the job lacks.
	instance *Instance
}

// newAttempt returns an error if the job names a policy that is not loaded.
func (s *Scheduler) newAttempt(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*attempt, error) {
	e, err := placement.NewEvaluation(s.workspace, policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	return &attempt{e: e, r: reconcile.New(snap, eval.JobKey(), e.Job, now, e.Plan, &s.buffers)}, nil
}

// recordUse has the circuit breaker of the version record its fault, or without one that it was
// called successfully.
func (a *attempt) recordUse(fault *policy.Error) {
	use := &a.e.Policy
	switch {
	case !use.Consulted:
	case fault != nil:
		use.Version.Breaker.RecordFault(a.e.Now, fault)
	default:
		use.Version.Breaker.RecordSuccess()
	}
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
	if a.instance != nil {
		return a.placeInstance()
	}
	a.r.StopRemoved()
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
	a.recheckExpulsions(plan)
	fault := e.Policy.Fault
	if ignored := e.Policy.Ignored; fault == nil && ignored != nil {
		fault = ignored
	}
	return &Outcome{
		Plan: plan, Failed: u.Failed, Queued: u.Queued,
		Classes: u.Classes, Escaped: u.Escaped, BlockedNodes: u.BlockedNodes,
		RecheckAt: u.RecheckAt, Retries: a.r.Retries(), SearchesCut: u.SearchesCut,
		Fault: fault, Version: e.Policy.Version,
	}
}

// recheckExpulsions has the job evaluated again when NoExecute taints, which nodes already
// have, end the time for which placed and updated allocations tolerate them. As in
// Kubernetes, that time starts with the placement. If the plan is committed later, the
// evaluation at that time requests another one.
func (a *attempt) recheckExpulsions(plan *model.Plan) {
	base := a.e.State.Base
	if !base.HasNoExecuteTaints() {
		return
	}
	for i := range plan.Groups {
		for _, list := range [][]*model.Allocation{plan.Groups[i].Placements, plan.Groups[i].Updates} {
			for _, alloc := range list {
				since := cmp.Or(alloc.CreateTime, a.e.Now) // a new allocation has no time before its commit
				if at, taint := alloc.Group.NoExecuteAt(base.Node(alloc.NodeID), since); taint != nil {
					a.e.Unplaced.RecheckBy(at)
				}
			}
		}
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
