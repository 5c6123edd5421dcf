package scheduler

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
)

// Config is what a Scheduler works with.
type Config struct {
	Policies Policies
	// NewID names a new allocation; nil: model.AllocName.
	NewID func(g *model.Group, index, incarnation int) string
	// Ties orders what no rule decides; zero: by id.
	Ties tiebreak.Order
	// Workers is how many goroutines may search for victims; 0 or 1: one.
	Workers int
	// Weights of namespaces; 1 where absent.
	Weights map[string]float64
	// Forget switches the memory of failed groups off, for tests that compare.
	Forget bool
	// Observe is told of every outcome before its plan goes anywhere, on the
	// goroutine that made it; nil: nobody is, and calls of policies are not counted.
	Observe func(Decision)
}

// Policies is where a scheduler gets the set of policies for an evaluation: a
// set that never changes, or the one in force.
type Policies interface {
	// Pin returns the set, which stays ready until its Unpin.
	Pin() *policy.Set
}

// Scheduler plans evaluations one after another.
type Scheduler struct {
	config  Config
	finder  preempt.Finder
	ranker  ranker
	memory  memory
	order   order
	tallies tallies
	// feasible is the feasibility of the group at hand.
	feasible feasibility
	allocs   []*model.Allocation
	// byGroup is the job's allocations by Group.Position, each in the order of the
	// table.
	byGroup [][]*model.Allocation
	// instances is scratch of reconcile.
	instances []instance
	// changed lists nodes for the run at hand, and most what some of them would have
	// with everything gone that may be evicted; see changedSince.
	changed []changedNode
	most    []model.Vector
	// outcomes is scratch of explainer.
	outcomes []preempt.Outcome
	// wants is what the groups of the evaluation at hand miss, one after another.
	wants []want
	// tell notes calls of policies; nil: nobody wants to know.
	tell  func(policy.Call)
	calls calls
}

// New makes a scheduler.
func New(config Config) *Scheduler {
	if config.NewID == nil {
		config.NewID = model.AllocName
	}
	s := &Scheduler{config: config, memory: newMemory()}
	if config.Observe != nil {
		s.tell = s.calls.add
	}
	return s
}

// Outcome is what an evaluation comes to.
type Outcome struct {
	Plan *model.Plan
	// Failed says, for each group with instances that found no place, why.
	Failed map[string]*model.Explanation
	// Queued counts those instances.
	Queued map[string]int
	// Classes, Escaped and BlockedNodes say what could unblock the evaluation.
	Classes      map[uint64]bool
	Escaped      bool
	BlockedNodes []string
	// RecheckAt is when a policy wants to be asked again, an allocation has to leave its
	// node, or one that failed is replaced; 0: not by time.
	RecheckAt int64
	// Retries are instances that failed several times in a row and are replaced later,
	// ascending by group and index.
	Retries []Retry
	// SearchesCut is how many searches, for a gang or for victims that strict budgets
	// let go of, gave up before they had tried
	// everything.
	SearchesCut int
	// Fault is the policy's, when there was one: the plan then evicts nobody,
	// unless the operator lets default decide instead.
	Fault error
	// Version decided who may be evicted; nil: the job is gone.
	Version *policy.Version
	// Calls are those of hooks, of every version that was asked, where somebody
	// observes outcomes. Without any, no policy had a say.
	Calls []policy.Call
}

// Placed is whether everything the job wants is there or in the plan.
func (o *Outcome) Placed() bool { return len(o.Failed) == 0 }

// Process plans one evaluation against a snapshot at a time in Unix
// nanoseconds. An error means that the evaluation cannot be planned at all,
// such as one whose job names a policy that is not loaded.
func (s *Scheduler) Process(eval *model.Evaluation, snap *state.Snapshot, now int64) (*Outcome, error) {
	policies := s.config.Policies.Pin()
	defer policies.Unpin()
	out, err := s.plan(policies, eval, snap, now)
	calls := s.calls.take() // even where nothing came of them
	if err == nil && s.config.Observe != nil {
		out.Calls = calls
		s.config.Observe(Decision{Eval: eval, Snap: snap, Outcome: out})
	}
	return out, err
}

func (s *Scheduler) plan(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*Outcome, error) {
	if eval.Type == model.JobBinding {
		return s.planBinding(policies, eval, snap, now)
	}
	r, err := s.newRun(policies, eval, snap, now)
	if err != nil {
		return nil, err
	}
	err = r.process()
	if fault, ok := errors.AsType[*policy.Error](err); ok {
		r, err = s.replan(r, fault)
	} else if r.asked {
		r.version.Breaker.RecordSuccess()
	}
	if err != nil {
		return nil, err
	}
	return r.finish(), nil
}

// replan plans again without the policy that was at fault: under default where
// the operator chose so, else as if nobody might be evicted.
func (s *Scheduler) replan(failed *run, fault *policy.Error) (*run, error) {
	at := failed.version
	if failed.asked {
		at.Breaker.RecordFault(failed.now, fault)
	}
	if fallsBack(at, failed.base.Config()) {
		r, err := s.runAgain(failed, fault, func(r *run) { r.version = r.policies.Default() })
		if _, again := errors.AsType[*policy.Error](err); !again {
			at.RecordFallback()
			return r, err
		}
	}
	return s.runAgain(failed, fault, func(r *run) { r.preempts = false })
}

// fallsBack is whether default decides where the version is at fault.
func fallsBack(v *policy.Version, c *model.SchedulerConfig) bool {
	return v.OnFault == policy.FallBack || v.OnFault == policy.AsConfigured && c.OnFault == model.OnFaultDefault
}

// runAgain plans an evaluation afresh with a change.
func (s *Scheduler) runAgain(failed *run, fault *policy.Error, change func(*run)) (*run, error) {
	r, err := s.newRun(failed.policies, failed.eval, failed.base, failed.now)
	if err != nil {
		return nil, err
	}
	change(r)
	r.out.Fault = fault
	return r, r.process()
}

// run is one evaluation being planned.
type run struct {
	s           *Scheduler
	eval        *model.Evaluation
	base        *state.Snapshot // as it was
	proposed    *state.Snapshot // with the plan so far
	draft       *state.Txn      // that made proposed and may be written on; nil: proposed stays as it is
	stopped     bool            // the plan stops something of the job itself
	now         int64
	job         *model.Job // nil: gone
	policies    *policy.Set
	version     *policy.Version
	asked       bool // the version
	preempts    bool
	held        bool  // see heldBack
	ceiling     int64 // highest priority that may be evicted for the job
	algorithm   model.Algorithm
	separations []*separation

	changedFrom uint64 // what Scheduler.changed is of, as is changedIn
	changedIn   *state.Snapshot
	evicted     protect.EvictionCounts
	byGroup     [][]*model.Allocation // of the Scheduler
	moving      bool                  // some node is not as it should be
	// sparingLooks is how many sets of those to be spared were tried; see chooseSparing.
	sparingLooks int
	sparingCut   bool
	leaves       int64                       // when the next allocation has to leave its node, or is tried again; 0: none
	retries      map[*model.Allocation]int64 // see retryAt
	counted      bool                        // retries are known
	apart        []*separators
	memorable    bool // see remembers
	merged       []*classes
	within       map[*model.Group]*domain // where a gang is tried; absent: anywhere
	plan         builder
	out          Outcome
}

func (s *Scheduler) newRun(policies *policy.Set, eval *model.Evaluation, snap *state.Snapshot, now int64) (*run, error) {
	r := &run{s: s, policies: policies, eval: eval, base: snap, proposed: snap, now: now, job: snap.Job(eval.JobKey())}
	r.plan, r.algorithm = newBuilder(), snap.Config().Algorithm
	if r.job == nil {
		return r, nil
	}
	version, err := policies.Select(r.job.Policy, snap.Config().Policy)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", r.job.Key(), err)
	}
	r.version = version
	r.held = heldBack(snap, r.job)
	r.preempts = snap.Config().Preemption[r.job.Type] && !r.job.NeverPreempts && !r.held
	return r, nil
}

func (r *run) process() error {
	defer r.s.tallies.reclaim()
	r.s.order.refresh(r.base, r.s.config.Ties)
	r.s.allocs = r.base.AppendJobAllocs(r.s.allocs[:0], r.eval.JobKey())
	r.s.wants = r.s.wants[:0]
	if r.job == nil || r.job.Stopped {
		r.stopAll()
		return nil
	}
	r.sortAllocs()
	r.memorable, r.ceiling = r.remembers(), r.highestVictim()
	switch {
	case r.job.Type.PerNode():
		return r.processPerNode()
	default:
		return r.processCounted()
	}
}

// highestVictim is the highest priority that may be evicted for the job.
func (r *run) highestVictim() int64 {
	if !r.preempts {
		return math.MinInt64
	}
	return preempt.Ceiling(r.job.Priority, r.version, r.base.Config().PriorityDelta)
}

// sortAllocs finds the allocations of each group that the job has. Those of a
// group mostly stand together, so that few are looked up or copied.
func (r *run) sortAllocs() {
	r.byGroup = resized(r.s.byGroup, len(r.job.Groups))
	clear(r.byGroup)
	r.s.byGroup = r.byGroup
	for from := 0; from < len(r.s.allocs); {
		group, to := r.s.allocs[from].Group, from+1
		for to < len(r.s.allocs) && r.s.allocs[to].Group == group {
			to++
		}
		r.addToGroup(group, r.s.allocs[from:to:to])
		from = to
	}
}

// addToGroup adds allocations of one version of a group.
func (r *run) addToGroup(g *model.Group, allocs []*model.Allocation) {
	if g.Job != r.job {
		if g = r.job.Group(g.Name); g == nil {
			return
		}
	}
	if at := &r.byGroup[g.Position]; *at == nil {
		*at = allocs
	} else {
		*at = append(*at, allocs...)
	}
}

// nodesChange is whether some node is down or draining, or has work leave it, so that
// allocations may have to move. Of a node that is gone nothing is left to count, but an
// evaluation for its sake; and what was kept for it is always looked at.
func (r *run) nodesChange() bool {
	if r.base.HasNoExecuteTaints() || r.eval.TriggeredBy == model.TriggerNodeUpdate || slices.ContainsFunc(r.job.Groups, mayAwait) {
		return true
	}
	ready := 0
	for c := range r.base.ChunkCount() {
		ready += bits.OnesCount64(r.base.Chunk(c).Eligible())
	}
	return ready < r.base.NodeCount() || len(r.s.order.byRank) != r.base.NodeCount()
}

// finish makes the plan.
func (r *run) finish() *Outcome {
	plan := &model.Plan{
		EvalID: r.eval.ID, Job: r.eval.JobKey(), Priority: r.eval.Priority,
		SnapshotIndex: r.base.Index(), Now: r.now, Groups: r.plan.groups(),
	}
	if r.job != nil {
		plan.Priority = r.job.Priority
	}
	r.out.Plan, r.out.Version = plan, r.version
	if r.out.Placed() {
		r.out.RecheckAt = 0 // nothing is left to ask again for
	}
	r.recheck(r.leaves)
	return &r.out
}

// stopAll ends whatever still runs of a job that is not wanted any more.
func (r *run) stopAll() {
	for _, a := range r.s.allocs {
		if a.Live() {
			r.plan.stop(a, "the job was stopped", false)
		}
	}
}

// fail records that instances of a group found no place.
func (r *run) fail(g *model.Group, count int, why *model.Explanation) {
	if r.out.Failed == nil {
		r.out.Failed, r.out.Queued = map[string]*model.Explanation{}, map[string]int{}
	}
	if r.out.Failed[g.Name] == nil {
		why.NoEviction = r.noEviction()
		r.out.Failed[g.Name] = why
	}
	r.out.Queued[g.Name] += count
}
