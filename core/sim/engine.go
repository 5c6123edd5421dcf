package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/sim/timeline"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/worker"
)

// components holds the parts of a server that the engine runs.
type components struct {
	clock   *clock.Virtual
	store   *state.Store
	broker  *broker.Broker
	feed    *worker.Feed
	applier *planner.Applier
	worker  *worker.Worker
}

func (c *components) now() int64 { return c.clock.Now().UnixNano() }

// begin starts the next log entry.
func (c *components) begin() *state.Txn { return c.store.Begin(c.store.Snapshot().Index() + 1) }

// engine is the state of one run: the parts of a server, and the timers.
type engine struct {
	components

	opts     Options
	file     *scenario.Resolved
	policies *policy.Set
	version  *policy.Version // of the scenario's default policy

	before       *state.Snapshot // the state to which the current plan is committed
	base         *state.Snapshot // the state of the current evaluation
	timers       lifetime.Ends
	next         int  // index into file.Steps
	hasNoExecute bool // an allocation runs at time 0 on a node with a NoExecute taint
	evals        int  // number of evaluations, for their IDs
	livelock     livelockGuard
	finished     []string // evaluations that have ended
	waiting      lifetime.Waiting
	disconnected disconnected
	bound        bindings
	jobs         jobStats
	record       recorder
	tracer       tracer
	faults       []error
}

// Play plays a scenario to its end. It returns an error if the scenario cannot be
// played: the file is inconsistent, or a policy is missing. Faults of policies are
// part of the result.
func Play(ctx context.Context, f *scenario.File, o Options) (*Run, error) {
	resolved, err := scenario.Resolve(f)
	if err != nil {
		return nil, err
	}
	e := &engine{opts: o, file: resolved, waiting: lifetime.NewWaiting(), disconnected: newDisconnected(), jobs: newJobStats(), bound: newBindings(), tracer: newTracer(o.Timeline)}
	if err := e.loadPolicies(); err != nil {
		return nil, err
	}
	defer e.policies.Unpin()
	if err := e.assemble(); err != nil {
		return nil, err
	}
	if err := e.play(ctx); err != nil {
		return nil, err
	}
	if err := e.record.askWhatIf(ctx, e); err != nil {
		return nil, err
	}
	return e.finish(), nil
}

// assemble creates the parts of a server and writes the state at time 0.
func (e *engine) assemble() error {
	e.clock = clock.NewVirtual(time.Unix(0, 0))
	e.livelock = newLivelockGuard(len(e.file.Jobs) + len(e.file.Bindings) + len(e.file.Running) + len(e.file.Assigned))
	e.store = state.New()
	var err error
	e.broker, err = broker.New(broker.Config{
		Clock: e.clock, Rand: rand.New(rand.NewPCG(e.file.Seed, 0)),
		EquivalenceClass: func(ev *model.Evaluation) uint64 { return unblock.EquivalenceClass(e.store.Snapshot(), ev) },
	})
	if err != nil {
		return err
	}
	e.feed = &worker.Feed{Broker: e.broker, Blocked: broker.NewBlocked(e.broker), Policies: e.policies}
	e.broker.Enable()
	if err := e.writeInitialState(); err != nil {
		return err
	}
	e.tracer.initial(&e.components)
	e.feed.Budgets(e.store.Snapshot(), e.now()) // initial values
	e.applier = planner.NewApplier(planner.Config{
		Store: e.store, Committer: planner.DirectCommitter{Store: e.store, OnCommit: e.committed}, PlacementVerifier: &feasible.Verifier{},
	})
	e.worker = worker.New(worker.Config{
		Queue: worker.LocalQueue(e.broker), Planner: submitter{e}, States: e.store, Evals: e,
		Scheduler: lookahead.NewScheduler(scheduler.Config{
			Policies: e.policies, Ties: tiesOf(e.opts, e.file), Workers: e.opts.Workers,
			Explain: true, NoDomainSearch: e.opts.NoDomainSearch,
		}),
		Clock: e.clock, NewEvalID: e.evalID, Observe: e.observe,
	})
	return nil
}

// tiesOf returns the order that breaks ties: that of the options, else that of the file.
func tiesOf(o Options, file *scenario.Resolved) tiebreak.Order {
	if o.Ties.ByID() && len(file.TieOrder) > 0 {
		return tiebreak.Listed(file.TieOrder)
	}
	return o.Ties
}

// submitter lets the worker submit plans without goroutines.
type submitter struct{ *engine }

func (s submitter) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	s.before = s.store.Snapshot()
	return s.applier.ApplyOne(plan)
}

func (e *engine) evalID() string {
	e.evals++
	return fmt.Sprintf("eval-%d", e.evals)
}

// writeInitialState writes the first entry: nodes, running allocations, and their jobs.
func (e *engine) writeInitialState() error {
	txn := e.begin()
	txn.ConfigWriter().SetMeta(state.Meta{Version: apply.RerunFrom}) // the rules of servers that are all upgraded
	for _, n := range e.file.Nodes {
		if err := txn.NodeWriter().Upsert(n); err != nil {
			return err
		}
	}
	running := map[*model.Job]bool{}
	for _, a := range e.file.Running {
		running[a.Job] = true
	}
	for _, j := range e.file.Jobs {
		if !running[j] {
			continue
		}
		if err := txn.JobWriter().Upsert(j); err != nil {
			return err
		}
		e.jobs.register(j)
		e.jobs.unevaluated[j.Key()] = true
	}
	for _, n := range e.file.Namespaces {
		own := *n
		txn.NamespaceWriter().Upsert(&own)
	}
	for _, b := range e.file.Budgets {
		own := *b
		txn.BudgetWriter().Upsert(&own)
	}
	txn.AllocWriter().Upsert(e.file.Running...)
	if err := e.bound.writeInitial(txn, e.file, &e.jobs); err != nil {
		return err
	}
	config := e.file.Config
	txn.ConfigWriter().Set(&config)
	driven := e.tainted()
	txn.EvalWriter().Upsert(driven...)
	snap := txn.Commit()
	e.record.start(e, snap)
	e.record.collector.EvaluationCreated(len(driven))
	e.feed.Evals(snap, e.now(), driven...)
	for _, a := range e.file.Running {
		stored := snap.Alloc(a.ID)
		e.record.initial(stored)
		addEnd(&e.timers, e.file, stored, e.now())
	}
	for a := range snap.Assignments() {
		addBindingEnd(&e.timers, snap, a)
	}
	return nil
}

// play advances from instant to instant.
func (e *engine) play(ctx context.Context) error {
	for {
		at, ok := e.nextInstant()
		if !ok {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		e.clock.AdvanceTo(time.Unix(0, at))
		e.hasNoExecute = false
		e.ends(at)
		e.tracer.changes(&e.components)
		if err := e.steps(at); err != nil {
			return err
		}
		if err := e.drain(ctx); err != nil {
			return err
		}
		e.tracer.mark(&e.components, timeline.Rest, 0)
		e.sweep()
		e.progress()
	}
}

// nextInstant returns the time of the next event; ok is false at the end of the run.
func (e *engine) nextInstant() (at int64, ok bool) {
	earliest := func(t int64) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if e.next < len(e.file.Steps) {
		earliest(e.file.Steps[e.next].At)
	}
	if e.hasNoExecute {
		earliest(e.now())
	}
	if t, more := e.timers.First(); more {
		earliest(t)
	}
	if t, more := e.clock.Next(); more {
		earliest(t.UnixNano())
	}
	if ok && e.file.Until != nil && at > *e.file.Until {
		return 0, false
	}
	return at, ok
}

// drain processes all ready evaluations, in zero virtual time.
func (e *engine) drain(ctx context.Context) error {
	for {
		d, ok := e.broker.TryDequeue(nil)
		snap := e.store.Snapshot()
		if !ok && !e.feed.Budgets(snap, e.now()) && !e.feed.RetryDeferred(snap, e.now()) {
			return nil
		}
		if !ok {
			continue
		}
		if err := e.livelock.count(e.now(), d.Eval); err != nil {
			return err
		}
		e.base = snap
		began := e.record.startDecision()
		if err := e.worker.Work(ctx, d); err != nil {
			return err
		}
		e.record.endDecision(began)
		e.tracer.changes(&e.components)
		e.reap()
	}
}

// observe records the outcome of an evaluation.
func (e *engine) observe(r worker.Report) {
	e.record.collector.EvaluationProcessed(1)
	if r.Outcome == nil {
		return
	}
	if r.Outcome.Fault != nil {
		e.faults = append(e.faults, r.Outcome.Fault)
	}
	if e.opts.Evaluated != nil {
		e.opts.Evaluated(Evaluated{Now: e.now(), Before: e.base, Report: r})
	}
	e.jobs.evaluated(r.Eval.JobKey(), r.Outcome)
	e.record.queued(e, r)
	e.record.observations(e, r)
}

// WriteEvals applies evaluations, as the log of a server would.
func (e *engine) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	e.write(evals)
	return nil
}

// write stores evaluations and enqueues them. It also writes those that became
// unnecessary.
func (e *engine) write(evals []*model.Evaluation) {
	for len(evals) > 0 {
		for _, ev := range evals {
			if e.store.Snapshot().Eval(ev.ID) == nil {
				e.record.collector.EvaluationCreated(1)
			}
			if ev.Status.Final() {
				e.finished = append(e.finished, ev.ID)
			}
			if ev.Status == model.EvalCancelled {
				e.record.collector.EvaluationCancelled(1)
			}
		}
		txn := e.begin()
		txn.EvalWriter().Upsert(evals...)
		snap := txn.Commit()
		evals = e.feed.Evals(snap, e.now(), evals...)
	}
}

// reap writes the end of evaluations that the broker has cancelled.
func (e *engine) reap() {
	for ends := e.feed.Reap(e.now()); len(ends) > 0; ends = e.feed.Reap(e.now()) {
		e.write(ends)
	}
}
