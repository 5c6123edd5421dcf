package placement

import (
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// PolicyUse is the policy that decides about the evictions of an evaluation.
type PolicyUse struct {
	Set     *policy.Set
	Version *policy.Version
	// Consulted is set once the version was called for victims.
	Consulted bool
	// Fault is the error because of which the evaluation is planned again; nil: none.
	Fault error
	// Ignored is the first fault of a call for evictions to which moves were an alternative; nil:
	// none. The moves take place, but the version was at fault nevertheless, and is not called again.
	Ignored *policy.Error
}

// Ignore records the fault of a call for evictions to which moves are an alternative. It reports
// whether err is such a fault.
func (u *PolicyUse) Ignore(err error) bool {
	fault, ok := errors.AsType[*policy.Error](err)
	if ok && u.Ignored == nil {
		u.Ignored = fault
	}
	return ok
}

// An Evaluation is one evaluation of a job that is being planned.
type Evaluation struct {
	Eval   *model.Evaluation
	Job    *model.Job // nil: it was removed
	Now    int64      // Unix nanoseconds
	Policy PolicyUse

	Preemption proposal.Preemption
	State      *proposal.State
	Plan       *proposal.Plan
	Rules      *feasible.Context // set by Begin
	Unplaced   Unplaced
	Moves      MoveUse

	ws   *Workspace
	held bool // see IsHeld
	// cacheable is set if failures of groups may be cached; see failureCache.
	cacheable bool
	evictions protect.EvictionCounts
	// domains restricts groups to a topology domain; absent: no restriction.
	domains map[*model.Group]*feasible.Domain
	budget  budgetSearchUse
	// fuelUsed sums up the cost of the plays of the evaluation; see Player.
	fuelUsed int
}

// NewEvaluation prepares the planning of an evaluation. It returns an error if the
// policy that the job names is not loaded. Until Begin, the caller may select
// another policy version or call ForbidPreemption.
func NewEvaluation(ws *Workspace, set *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*Evaluation, error) {
	e := &Evaluation{
		ws: ws, Eval: eval, Job: snap.Job(eval.JobKey()), Now: now, Policy: PolicyUse{Set: set},
		Preemption: proposal.NoPreemption(), State: proposal.NewState(snap, now), Plan: proposal.NewPlan(),
	}
	if e.Job == nil {
		return e, nil
	}
	version, err := set.Select(e.Job.Policy, snap.Config().Policy)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", e.Job.Key(), err)
	}
	e.Policy.Version = version
	e.held = IsHeld(snap, e.Job)
	e.Preemption.Allowed = mayPreempt(snap.Config(), e.Job) && !e.held
	return e, nil
}

// SearchesDomains reports whether domains are searched before nodes, for groups that must
// share one.
func SearchesDomains(e *Evaluation) bool { return !e.ws.Options.NoDomainSearch }

// ForbidPreemption plans the evaluation without evictions.
func (e *Evaluation) ForbidPreemption() { e.Preemption = proposal.NoPreemption() }

// Begin prepares placements. allocs are the job's allocations by Group.Position.
func (e *Evaluation) Begin(allocs [][]*model.Allocation) {
	base := e.State.Base
	e.ws.Order.Refresh(base, e.ws.Options.TieOrder)
	e.ws.changed.reset()
	e.Rules = feasible.NewContext(e.State, allocs, &e.Preemption, &e.ws.counters)
	e.Moves.rate = MoveRate(base, e.Job)
	e.ws.elsewhere.Begin(e.State)
	e.cacheable = e.mayCache()
	if e.Preemption.Allowed {
		e.Preemption.Ceiling = preempt.Ceiling(e.Job.Priority, e.Policy.Version, base.Config().PriorityDelta)
	}
}

// Close returns memory to the workspace. Rules must not be used afterwards.
func (e *Evaluation) Close() { e.ws.counters.Reclaim() }

// WithoutPreemption calls f as if nothing might be evicted, nor moved unless moves is set.
// Failures inside are not cached, because they are not those of the evaluation.
func (e *Evaluation) WithoutPreemption(moves bool, f func() error) error {
	preemption, rate := e.Preemption, e.Moves.rate
	e.ForbidPreemption()
	if !moves {
		e.Moves.rate = nil
	}
	err := WithoutCache(e, f)
	e.Preemption, e.Moves.rate = preemption, rate
	return err
}

// WithoutMoves calls f without moving instances of other jobs, and without caching the failures
// inside.
func WithoutMoves(e *Evaluation, f func() error) error {
	rate := e.Moves.rate
	e.Moves.rate = nil
	err := WithoutCache(e, f)
	e.Moves.rate = rate
	return err
}

// WithoutCache calls f without caching the failures inside, because they are not those of the
// evaluation.
func WithoutCache(e *Evaluation, f func() error) error {
	cacheable := e.cacheable
	e.cacheable = false
	err := f()
	e.cacheable = cacheable
	return err
}

// Within calls f with groups limited to topology domains. Failures inside are not
// cached, because they are not those of the evaluation.
func (e *Evaluation) Within(domains map[*model.Group]*feasible.Domain, f func() error) error {
	cacheable, outer := e.cacheable, e.domains
	e.cacheable, e.domains = e.cacheable && len(domains) == 0, domains
	err := f()
	e.cacheable, e.domains = cacheable, outer
	return err
}

// ChooserInfo reports whether totals, or least victims, bound the tiers of the policy that chooses
// among options (see Info.Monotone), and returns the columns that it reads.
func (u *PolicyUse) ChooserInfo() (monotone bool, read sdk.Columns) {
	chooser := u.Version
	if !chooser.Hooks().Has(policy.HookScoreOptions) {
		chooser = u.Set.Default()
	}
	read = chooser.Columns(policy.HookScoreOptions)
	return chooser.Info().Monotone && (!read.Has(sdk.VictimColumns) || preempt.BoundsVictims(read)), read
}

// Workers returns the number of goroutines that may share a search; 0 or 1: one.
func Workers(e *Evaluation) int { return e.ws.Options.Workers }

// NodesInOrder returns the positions of all nodes in tie order.
func (e *Evaluation) NodesInOrder() []int32 { return e.ws.Order.ByRank }

// ResetEvictions sets the victims of the plan so far to those of some choices.
func (e *Evaluation) ResetEvictions(victims ...[]*model.Allocation) {
	e.evictions = protect.EvictionCounts{}
	for _, list := range victims {
		e.CountEvictions(list)
	}
}

// CountEvictions records victims of the plan.
func (e *Evaluation) CountEvictions(victims []*model.Allocation) {
	for _, v := range victims {
		e.evictions.Add(v.Group)
	}
}

// ReleaseStopped removes the allocations that the plan stops from the proposed state,
// so that their capacity can be used.
func (e *Evaluation) ReleaseStopped() {
	var stopped []*model.Allocation
	for id := range e.Plan.Stops() {
		stopped = append(stopped, e.State.Snapshot().Alloc(id))
	}
	if len(stopped) > 0 {
		e.State.Apply(nil, stopped, model.DesiredStop)
	}
}

// Fail records that instances of a group could not be placed.
func (e *Evaluation) Fail(g *model.Group, count int, why *model.Explanation) {
	u := &e.Unplaced
	if u.Failed == nil {
		u.Failed, u.Queued = map[string]*model.Explanation{}, map[string]int{}
	}
	if u.Failed[g.Name] == nil {
		why.NoEviction = e.noEviction()
		u.Failed[g.Name] = why
	}
	u.Escaped = u.Escaped || e.Moves.Allowed() // capacity of other classes may receive what is moved
	u.Queued[g.Name] += count
}
