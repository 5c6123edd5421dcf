package lookahead

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/lifetime"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/worker"
)

// A game is one play: the parts of a server on a fork of a snapshot. Events of an instant
// are processed in the order of core/sim: ends first, then evaluations by priority.
type game struct {
	clock   *clock.Virtual
	store   *state.Store
	broker  *broker.Broker
	feed    worker.Feed
	applier *planner.Applier
	worker  *worker.Worker

	before  *state.Snapshot // to which the current plan is committed
	ends    lifetime.Ends
	waiting lifetime.Waiting
	ledger  ledger
	horizon int64
	fuel    int
	cost    int // of an evaluation
	evals   int // number of new evaluations, for their IDs
}

func newGame(p *Player, base *state.Snapshot, now int64) *game {
	g := &game{
		clock: clock.NewVirtual(time.Unix(0, now)), store: state.NewAt(base), waiting: lifetime.NewWaiting(), ledger: newLedger(),
		horizon: now + int64(Horizon), fuel: playFuel, cost: max(minNodes, base.NodeCount()),
	}
	// New cannot fail: the configuration is constant, and the defaults are valid.
	g.broker, _ = broker.New(broker.Config{
		Clock: g.clock, Rand: rand.New(rand.NewPCG(0, 0)),
		EquivalenceClass: func(ev *model.Evaluation) uint64 { return unblock.EquivalenceClass(g.store.Snapshot(), ev) },
	})
	g.broker.Enable()
	g.feed = worker.Feed{Broker: g.broker, Blocked: broker.NewBlocked(g.broker), Policies: p}
	g.applier = planner.NewApplier(planner.Config{
		Store: g.store, Committer: planner.DirectCommitter{Store: g.store, OnCommit: g.committed}, PlacementVerifier: &feasible.Verifier{},
	})
	g.worker = worker.New(worker.Config{
		Queue: worker.LocalQueue(g.broker), Planner: g, States: g.store, Evals: g, Scheduler: p.scheduler,
		Clock: g.clock, NewEvalID: g.evalID,
	})
	for _, end := range p.outlook.ends {
		g.ends.Add(end)
	}
	for _, w := range p.outlook.waits {
		g.waiting.Add(w[0], w[1])
	}
	return g
}

// play commits the plan, completes its evaluation, and plays on.
func (g *game) play(ctx context.Context, eval *model.Evaluation, plan *model.Plan) {
	base := g.store.Snapshot()
	g.broker.Enqueue(eval)
	d, ok := g.broker.TryDequeue(nil)
	if !ok {
		return // it was garbage-collected, or waits for a later time
	}
	isOther := func(e *model.Evaluation) bool { return e.ID == eval.ID || e.Type == model.JobBinding }
	broker.Batch(g.broker, func() { g.feed.Restore(base, g.now(), 0, isOther) })
	if _, err := g.Submit(ctx, plan); err != nil || g.work(ctx, d) != nil {
		return
	}
	for g.drain(ctx) && len(g.ledger.absent) > 0 && g.advance() {
	}
}

// work processes an evaluation, as long as there is fuel.
func (g *game) work(ctx context.Context, d broker.Delivery) error {
	g.fuel = max(0, g.fuel-g.cost)
	return g.worker.Work(ctx, d)
}

// drain processes all ready evaluations. It returns false if the play must end: there is no
// fuel, or an evaluation cannot be planned.
func (g *game) drain(ctx context.Context) bool {
	for g.fuel > 0 {
		d, ok := g.broker.TryDequeue(nil)
		snap := g.store.Snapshot()
		if !ok && !g.feed.Budgets(snap, g.now()) && !g.feed.RetryDeferred(snap, g.now()) {
			return true
		}
		if !ok {
			continue
		}
		if g.work(ctx, d) != nil {
			return false
		}
		for cancelled := g.feed.Reap(g.now()); len(cancelled) > 0; cancelled = g.feed.Reap(g.now()) {
			g.write(cancelled)
		}
	}
	return false
}

// advance proceeds to the next event. It returns false if there is none within the horizon.
func (g *game) advance() bool {
	at, ok := g.ends.First()
	if t, more := g.clock.Next(); more && (!ok || t.UnixNano() < at) {
		at, ok = t.UnixNano(), true
	}
	if !ok || at > g.horizon {
		return false
	}
	g.clock.AdvanceTo(time.Unix(0, at))
	g.finish(at)
	return true
}

// finish completes the allocations that have finished or stopped at an instant.
func (g *game) finish(at int64) {
	var updates []apply.ClientUpdate
	var freed, stopped []string
	snap := g.store.Snapshot()
	for _, end := range g.ends.Due(at) {
		a := snap.Alloc(end.Alloc)
		if a == nil || a.Client.Terminal() || end.Stop != (a.Desired != model.DesiredRun) {
			continue
		}
		updates = append(updates, apply.ClientUpdate{AllocID: a.ID, Status: model.ClientComplete, Started: a.Started, StartTime: a.StartTime})
		if end.Stop {
			stopped = append(stopped, a.ID)
		} else {
			freed = append(freed, a.NodeID)
		}
	}
	if len(updates) == 0 {
		return
	}
	txn := g.begin()
	evals := apply.ClientUpdates(txn, at, updates)
	snap = txn.Commit()
	g.feed.Evals(snap, at, evals...)
	g.feed.Freed(snap, at, append(freed, snap.ChangedCohortNodes()...)...)
	for _, id := range stopped {
		g.start(g.waiting.Gone(id)...)
	}
}

// committed processes a commit: victims and stopped allocations begin to stop, and
// placements start once all of their victims have stopped.
func (g *game) committed(snap *state.Snapshot, batch *apply.Batch, evals []*model.Evaluation) {
	var freed, ready, labelled []string
	for _, bp := range batch.Plans {
		for _, i := range bp.Groups {
			group := &bp.Plan.Groups[i]
			g.ledger.committed(g.now(), group, g.before.Alloc)
			freed = g.stop(group, freed)
			for _, a := range group.Placements {
				if len(a.Group.Labels) > 0 {
					labelled = append(labelled, a.NodeID)
				}
				if !g.waiting.Waits(a.ID) {
					ready = append(ready, a.ID)
				}
			}
		}
	}
	freed = append(freed, snap.ChangedCohortNodes()...)
	g.start(ready...)
	snap = g.store.Snapshot()
	g.feed.Evals(snap, g.now(), evals...)
	g.feed.Freed(snap, g.now(), freed...)
	g.feed.Placed(snap, g.now(), labelled...)
}

// stop begins to stop the allocations that a commit group ends, and records the placements
// that wait for them. It appends the nodes that may have free capacity now.
func (g *game) stop(group *model.CommitGroup, freed []string) []string {
	ending := func(id string) *model.Allocation {
		a := g.before.Alloc(id)
		if a == nil || !a.Live() {
			return nil
		}
		freed = append(freed, a.NodeID)
		g.ends.Add(lifetime.End{At: g.now() + a.Group.KillTimeout, Alloc: id, Stop: true})
		return a
	}
	for _, s := range group.Stops {
		if a := ending(s.AllocID); a != nil && s.MovedTo != "" && a.Group.KillTimeout > 0 {
			g.waiting.AddMove(group, a)
		}
	}
	for _, v := range group.Evictions {
		if a := ending(v.AllocID); a != nil {
			if a.Group.KillTimeout > 0 && !a.Unknown(g.before.Node(a.NodeID)) {
				g.waiting.Add(v.By, a.ID)
			}
			g.waiting.Inherit(v.By, a.ID)
		}
	}
	for _, u := range group.Updates {
		freed = append(freed, u.NodeID)
	}
	return freed
}

// start starts placements whose victims have all stopped.
func (g *game) start(ids ...string) {
	now := g.now()
	var updates []apply.ClientUpdate
	snap := g.store.Snapshot()
	for _, id := range ids {
		if a := snap.Alloc(id); a != nil && a.Live() {
			updates = append(updates, apply.ClientUpdate{AllocID: id, Status: model.ClientRunning, Started: true, StartTime: now})
		}
	}
	if len(updates) == 0 {
		return
	}
	txn := g.begin()
	apply.ClientUpdates(txn, now, updates)
	snap = txn.Commit()
	for _, u := range updates {
		a := snap.Alloc(u.AllocID)
		g.ledger.started(now, a)
		g.ends.AddStarted(a, a.Group.Duration, now)
	}
}

// Submit commits a plan for the worker.
func (g *game) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	g.before = g.store.Snapshot()
	return g.applier.ApplyOne(plan)
}

// WriteEvals writes the results of an evaluation for the worker.
func (g *game) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	g.write(evals)
	return nil
}

// write stores evaluations and enqueues them, and those that became needless.
func (g *game) write(evals []*model.Evaluation) {
	for len(evals) > 0 {
		txn := g.begin()
		txn.EvalWriter().Upsert(evals...)
		evals = g.feed.Evals(txn.Commit(), g.now(), evals...)
	}
}

func (g *game) begin() *state.Txn { return g.store.Begin(g.store.Snapshot().Index() + 1) }

func (g *game) now() int64 { return g.clock.Now().UnixNano() }

// evalID returns an ID that no evaluation of a server or simulation has.
func (g *game) evalID() string {
	g.evals++
	return "played-" + strconv.Itoa(g.evals)
}
