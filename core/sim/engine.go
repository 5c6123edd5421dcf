package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
)

// engine is a scenario being played: one server's parts, and an agenda.
type engine struct {
	opts     Options
	file     *scenario.Resolved
	policies *policy.Set
	version  *policy.Version // of the scenario's policy

	clock   *clock.Virtual
	store   *state.Store
	broker  *broker.Broker
	feed    *worker.Feed
	applier *planner.Applier
	worker  *worker.Worker

	before  *state.Snapshot // the state that the plan at hand is committed to
	agenda  agenda
	next    int  // of file.Steps
	driven  bool // something runs at the beginning where a taint drives work out
	evals   int  // made, for their names
	rounds  rounds
	over    []string // evaluations that reached their end
	waiting waiting
	silent  silent
	bound   bindings
	wanted  ledger
	record  recorder
	faults  []error
}

// Play plays a scenario to its end. An error means that it cannot be played:
// the file does not hold together, or a policy is not there. A policy's faults
// are in the result.
func Play(ctx context.Context, f *scenario.File, o Options) (*Run, error) {
	resolved, err := scenario.Resolve(f)
	if err != nil {
		return nil, err
	}
	e := &engine{opts: o, file: resolved, waiting: newWaiting(), silent: newSilent(), wanted: newLedger(), bound: newBindings()}
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
	return e.finish(), nil
}

// assemble builds the server's parts and puts in place what runs at time 0.
func (e *engine) assemble() error {
	e.clock = clock.NewVirtual(time.Unix(0, 0))
	e.rounds = newRounds(len(e.file.Jobs) + len(e.file.Bindings) + len(e.file.Running) + len(e.file.Assigned))
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
	if err := e.lay(); err != nil {
		return err
	}
	e.feed.Budgets(e.store.Snapshot(), e.now()) // as things begin
	e.applier = planner.NewApplier(planner.Config{
		Store: e.store, Committer: planner.DirectCommitter{Store: e.store, OnCommit: e.committed}, PlacementVerifier: &feasible.Verifier{},
	})
	e.worker = worker.New(worker.Config{
		Broker: e.broker, Planner: submitter{e}, States: e.store, Evals: e,
		Scheduler: scheduler.New(scheduler.Config{
			Policies: e.policies, Ties: e.opts.Ties, Workers: e.opts.Workers, Weights: e.file.Weights,
		}),
		Clock: e.clock, NewEvalID: e.evalID, Observe: e.observe,
	})
	return nil
}

// submitter lets the worker submit plans without goroutines.
type submitter struct{ *engine }

func (s submitter) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	s.before = s.store.Snapshot()
	return s.applier.ApplyOne(plan)
}

func (e *engine) now() int64 { return e.clock.Now().UnixNano() }

func (e *engine) evalID() string {
	e.evals++
	return fmt.Sprintf("eval-%d", e.evals)
}

// begin opens the next entry of the log.
func (e *engine) begin() *state.Txn { return e.store.Begin(e.store.Snapshot().Index() + 1) }

// lay writes the first entry: nodes, what runs, and the jobs it belongs to.
func (e *engine) lay() error {
	txn := e.begin()
	for _, n := range e.file.Nodes {
		if err := txn.UpsertNode(n); err != nil {
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
		if err := txn.UpsertJob(j); err != nil {
			return err
		}
		e.wanted.register(j)
		e.wanted.idle[j.Key()] = true
	}
	for _, b := range e.file.Budgets {
		own := *b
		txn.UpsertBudget(&own)
	}
	txn.UpsertAllocs(e.file.Running...)
	if err := e.layBindings(txn); err != nil {
		return err
	}
	config := e.file.Config
	txn.SetConfig(&config)
	driven := e.drivenOut()
	txn.UpsertEvals(driven...)
	snap := txn.Commit()
	e.record.begin(e, snap)
	e.record.collector.EvaluationCreated(len(driven))
	e.feed.Evals(snap, e.now(), driven...)
	for _, a := range e.file.Running {
		stored := snap.Alloc(a.ID)
		e.record.initial(stored)
		e.scheduleEnd(stored)
	}
	e.beginBindings(snap)
	return nil
}

// play goes from instant to instant.
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
		e.driven = false
		e.ends(at)
		if err := e.steps(at); err != nil {
			return err
		}
		if err := e.drain(ctx); err != nil {
			return err
		}
		e.sweep()
		e.progress()
	}
}

// nextInstant is the next moment at which anything happens; ok is false at the
// end of the run.
func (e *engine) nextInstant() (at int64, ok bool) {
	earliest := func(t int64) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if e.next < len(e.file.Steps) {
		earliest(e.file.Steps[e.next].At)
	}
	if e.driven {
		earliest(e.now())
	}
	if t, more := e.agenda.first(); more {
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

// drain works off what is ready, in zero virtual time.
func (e *engine) drain(ctx context.Context) error {
	for {
		d, ok := e.broker.TryDequeue(nil)
		snap := e.store.Snapshot()
		if !ok && !e.feed.Budgets(snap, e.now()) && !e.feed.Settle(snap, e.now()) {
			return nil
		}
		if !ok {
			continue
		}
		if err := e.rounds.count(e.now(), d.Eval); err != nil {
			return err
		}
		began := e.record.startDecision()
		if err := e.worker.Work(ctx, d); err != nil {
			return err
		}
		e.record.endDecision(began)
		e.reap()
	}
}

// observe learns what became of an evaluation.
func (e *engine) observe(r worker.Report) {
	e.record.collector.EvaluationProcessed(1)
	if r.Outcome == nil {
		return
	}
	if r.Outcome.Fault != nil {
		e.faults = append(e.faults, r.Outcome.Fault)
	}
	e.wanted.evaluated(r.Eval.JobKey(), r.Outcome)
	e.record.queued(e, r)
}

// WriteEvals applies evaluations, as the log would.
func (e *engine) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	e.write(evals)
	return nil
}

// write stores evaluations and feeds them on; those that thereby became
// needless are written, too.
func (e *engine) write(evals []*model.Evaluation) {
	for len(evals) > 0 {
		for _, ev := range evals {
			if e.store.Snapshot().Eval(ev.ID) == nil {
				e.record.collector.EvaluationCreated(1)
			}
			if ev.Status.Final() {
				e.over = append(e.over, ev.ID)
			}
			if ev.Status == model.EvalCancelled {
				e.record.collector.EvaluationCancelled(1)
			}
		}
		txn := e.begin()
		txn.UpsertEvals(evals...)
		snap := txn.Commit()
		evals = e.feed.Evals(snap, e.now(), evals...)
	}
}

// reap writes the ends of evaluations that the broker no longer needs.
func (e *engine) reap() {
	for ends := e.feed.Reap(e.now()); len(ends) > 0; ends = e.feed.Reap(e.now()) {
		e.write(ends)
	}
}
