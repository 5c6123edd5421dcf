package sim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/lease"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/worker"
	"github.com/cede-scheduler/cede/policies/karmada"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

const (
	shared = "shared" // the member cluster
	units  = 12
	grace  = int64(3e9)
	ttl    = int64(20e9)
)

// pool is a server pool: a state and one worker.
type pool struct {
	t       *testing.T
	name    string
	clock   *clock.Virtual
	store   *state.Store
	broker  *broker.Broker
	feed    *worker.Feed
	worker  *worker.Worker
	evals   int
	submits int
}

func newPool(t *testing.T, name string, c *clock.Virtual) *pool {
	p := &pool{t: t, name: name, clock: c, store: state.New()}
	p.apply(func(txn *state.Txn) ([]*model.Evaluation, []string) {
		config := *coretest.AllPreempt()
		config.Policy = "karmada"
		txn.ConfigWriter().Set(&config)
		if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: shared, Capacity: model.Resources{"cpu": units}}); err != nil {
			t.Fatal(err)
		}
		return nil, nil
	})
	p.restart()
	return p
}

// restart simulates a change of leader: only the part of the queue that the state
// contains remains.
func (p *pool) restart() {
	var err error
	if p.broker, err = broker.New(broker.Config{Clock: p.clock}); err != nil {
		p.t.Fatal(err)
	}
	policies := coretest.Policies(func() sdk.Policy { return karmada.New() })
	p.feed = &worker.Feed{Broker: p.broker, Blocked: broker.NewBlocked(p.broker), Policies: policies}
	p.broker.Enable()
	applier := planner.NewApplier(planner.Config{
		Store: p.store, PlacementVerifier: &feasible.Verifier{},
		Committer: planner.DirectCommitter{Store: p.store, OnCommit: func(snap *state.Snapshot, _ *apply.Batch, evals []*model.Evaluation) {
			p.feed.Evals(snap, p.now(), evals...)
			p.feed.Freed(snap, p.now(), model.ClusterLocation(shared))
		}},
	})
	p.worker = worker.New(worker.Config{
		Queue: worker.LocalQueue(p.broker), Planner: planning{applier}, States: p.store, Evals: p, Clock: p.clock, NewEvalID: p.evalID,
		Scheduler: scheduler.New(scheduler.Config{Policies: policies}),
	})
	snap := p.store.Snapshot()
	for e := range snap.Evals() {
		p.feed.Evals(snap, p.now(), e)
	}
}

type planning struct{ *planner.Applier }

func (d planning) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	return d.ApplyOne(plan)
}

func (p *pool) now() int64 { return p.clock.Now().UnixNano() }

func (p *pool) evalID() string {
	p.evals++
	return fmt.Sprintf("%s-eval-%d", p.name, p.evals)
}

func (p *pool) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	for len(evals) > 0 {
		txn := p.store.Begin(p.store.Snapshot().Index() + 1)
		txn.EvalWriter().Upsert(evals...)
		evals = p.feed.Evals(txn.Commit(), p.now(), evals...)
	}
	return nil
}

// apply commits a log entry of the pool.
func (p *pool) apply(do func(*state.Txn) (evals []*model.Evaluation, clusters []string)) {
	txn := p.store.Begin(p.store.Snapshot().Index() + 1)
	evals, clusters := do(txn)
	snap := txn.Commit()
	if p.feed == nil {
		return
	}
	p.feed.Evals(snap, p.now(), evals...)
	for _, id := range clusters {
		p.feed.Freed(snap, p.now(), model.ClusterLocation(id))
	}
}

func (p *pool) register(b *model.Binding) {
	p.apply(func(txn *state.Txn) ([]*model.Evaluation, []string) {
		if err := txn.BindingWriter().Upsert(b); err != nil {
			p.t.Fatal(err)
		}
		e := &model.Evaluation{ID: p.evalID(), Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding}
		txn.EvalWriter().Upsert(e)
		return []*model.Evaluation{e}, nil
	})
}

func (p *pool) submit(r *rand.Rand) {
	p.submits++
	p.register(&model.Binding{
		Namespace: "default", ID: fmt.Sprint("b", p.submits), Priority: int32(r.IntN(5)), Preempts: r.IntN(4) > 0, Replicas: 1 + r.IntN(3),
		Resources: model.Resources{"cpu": 1 + r.Int64N(3)}, KillTimeout: grace,
	})
}

// stop stops a random binding of the pool, if there is one.
func (p *pool) stop(r *rand.Rand) {
	if p.submits == 0 {
		return
	}
	b := p.store.Snapshot().Binding(model.JobKey{Namespace: "default", ID: fmt.Sprint("b", 1+r.IntN(p.submits))})
	next := *b
	next.Stopped = true
	p.register(&next)
}

func (p *pool) work() {
	for {
		d, ok := p.broker.TryDequeue(nil)
		if !ok && !p.feed.RetryDeferred(p.store.Snapshot(), p.now()) {
			return
		}
		if !ok {
			continue
		}
		if err := p.worker.Work(p.t.Context(), d); err != nil {
			p.t.Fatal(err)
		}
		for ends := p.feed.Reap(p.now()); len(ends) > 0; ends = p.feed.Reap(p.now()) {
			_ = p.WriteEvals(p.t.Context(), broker.Delivery{}, ends...)
		}
	}
}

// agent is the agent of the cluster that the pools share.
type agent struct {
	t         *testing.T
	clock     *clock.Virtual
	leases    *lease.Manager
	stopAt    map[lease.Key]int64                  // end of stopping leases
	lastIndex map[string]uint64                    // index of the newest state received from each pool
	updates   map[lease.Key]apply.AssignmentUpdate // not yet acknowledged by the pool
	revoked   map[[2]string]bool                   // {winner, loser} of each revocation
	bindings  map[lease.Key]string                 // binding of each lease
}

// restart discards all state that the agent does not persist.
func (m *agent) restart() {
	leases, last := m.leases.Leases()
	m.leases = lease.New(map[string]int64{"units": units}, last, leases...)
}

// sync is one exchange with a pool: it reads the desired assignments and, unless the
// response is lost, reports their status.
func (m *agent) sync(p *pool, seen *state.Snapshot, lost bool) {
	now := m.clock.Now().UnixNano()
	if seen.Index() < m.lastIndex[p.name] {
		return // a newer state was received first
	}
	m.lastIndex[p.name] = seen.Index()
	wanted := map[lease.Key]bool{}
	for a, b := range seen.ClusterWorkload(shared) {
		key := lease.Key{Pool: p.name, ID: a.ID}
		wanted[key] = true
		if _, dead := m.updates[key]; !dead {
			m.reconcile(now, key, a, b)
		}
	}
	leases, _ := m.leases.Leases()
	for _, l := range leases {
		if l.Pool == p.name {
			m.stopping(now, l, wanted[l.Key])
		}
	}
	for key := range m.updates {
		if key.Pool == p.name && !wanted[key] {
			delete(m.updates, key) // acknowledged by the pool
		}
	}
	if !lost {
		m.report(now, p)
	}
}

func (m *agent) reconcile(now int64, key lease.Key, a *model.Assignment, b *model.Binding) {
	if !a.Live() {
		if leases, _ := m.leases.Leases(); !slices.ContainsFunc(leases, func(l lease.Lease) bool { return l.Key == key }) {
			m.updates[key] = apply.AssignmentUpdate{ID: a.ID, Client: model.ClientComplete}
		} else if m.stopAt[key] == 0 {
			m.stopAt[key] = now + grace
		}
		return
	}
	m.bindings[key] = key.Pool + "/" + a.Binding.ID
	before, _ := m.leases.Leases()
	l, err := m.leases.Grant(now, lease.Request{
		Key: key, Resources: map[string]int64{"units": a.Vec[0]}, Priority: b.Priority, Evicts: b.Preempts, Grace: grace, TTL: ttl,
	})
	if err != nil {
		if !slices.ContainsFunc(before, func(l lease.Lease) bool { return l.Key == key }) {
			m.updates[key] = apply.AssignmentUpdate{ID: a.ID, Client: model.ClientFailed, Text: err.Error()}
		}
		return
	}
	m.checkRevocations(before, l)
	_ = m.leases.Start(now, key, l.Number) // fails if the lease waits for others to stop
}

// checkRevocations checks the leases that a grant revoked: they have strictly lower
// priority, and did not revoke the winner's lease before.
func (m *agent) checkRevocations(before []lease.Lease, l lease.Lease) {
	after, _ := m.leases.Leases()
	for _, old := range before {
		at := slices.IndexFunc(after, func(x lease.Lease) bool { return x.Key == old.Key })
		if old.State == lease.Stopping || at >= 0 && after[at].State != lease.Stopping {
			continue
		}
		winner, loser := m.bindings[l.Key], m.bindings[old.Key]
		if old.Priority >= l.Priority {
			m.t.Fatalf("%s of priority %d is revoked for %s of %d", loser, old.Priority, winner, l.Priority)
		}
		if m.revoked[[2]string{loser, winner}] {
			m.t.Fatalf("%s and %s evict each other repeatedly", loser, winner)
		}
		m.revoked[[2]string{winner, loser}] = true
	}
}

// stopping ends a lease that was revoked or is no longer desired, once its grace
// period has passed.
func (m *agent) stopping(now int64, l lease.Lease, wanted bool) {
	if m.stopAt[l.Key] == 0 && (l.State == lease.Stopping || !wanted) {
		m.stopAt[l.Key] = now + grace
	}
	if at := m.stopAt[l.Key]; at == 0 || now < at {
		return
	}
	delete(m.stopAt, l.Key)
	m.leases.Release(l.Key, l.Number)
	client := model.ClientComplete
	if l.State == lease.Stopping {
		client = model.ClientFailed
	}
	m.updates[l.Key] = apply.AssignmentUpdate{ID: l.ID, Client: client, Text: "revoked for another pool"}
}

// report sends a pool the status of its assignments, and the leases of other pools as
// claims.
func (m *agent) report(now int64, p *pool) {
	p.apply(func(txn *state.Txn) ([]*model.Evaluation, []string) {
		var updates []apply.AssignmentUpdate
		for key, u := range m.updates {
			if key.Pool == p.name {
				updates = append(updates, u)
			}
		}
		slices.SortFunc(updates, func(x, y apply.AssignmentUpdate) int { return strings.Compare(x.ID, y.ID) })
		var claims []*model.Claim
		for _, l := range m.leases.ForeignLeases(now, p.name) {
			expiry := l.Expiry
			if l.State != lease.Reserved {
				expiry = math.MaxInt64
			}
			claims = append(claims, &model.Claim{
				ID: "lease/" + l.Pool + "/" + l.ID, Claimant: model.LeaseClaimant(l.Pool, l.ID), ClusterID: shared, Priority: l.Priority,
				Vec: model.Vector{l.Resources["units"]}, Expiry: expiry,
			})
		}
		evals, _ := apply.AssignmentUpdates(txn, now, updates)
		apply.Leases(txn.ClaimWriter(), shared, claims)
		return evals, []string{shared}
	})
}

// check verifies that neither running nor granted leases exceed the capacity.
func (m *agent) check() {
	running, kept := int64(0), int64(0)
	leases, _ := m.leases.Leases()
	for _, l := range leases {
		if l.State != lease.Reserved {
			running += l.Resources["units"]
		}
		if l.State != lease.Stopping {
			kept += l.Resources["units"]
		}
	}
	if running > units || kept > units {
		m.t.Fatalf("%d units run and %d are granted, capacity %d: %+v", running, kept, units, leases)
	}
}

// checkConverged verifies that the assignments of the pools and the leases are equal.
func (m *agent) checkConverged(pools []*pool) {
	leases, _ := m.leases.Leases()
	live := 0
	for _, p := range pools {
		snap := p.store.Snapshot()
		if err := snap.Check(); err != nil {
			m.t.Fatal(err)
		}
		for a := range snap.ClusterWorkload(shared) {
			live++
			at := slices.IndexFunc(leases, func(l lease.Lease) bool { return l.Key == lease.Key{Pool: p.name, ID: a.ID} })
			if !a.Live() || at < 0 || leases[at].State != lease.Active || leases[at].Resources["units"] != a.Vec[0] {
				m.t.Fatalf("pool %s has assignment %+v, the cluster has leases %+v", p.name, a, leases)
			}
		}
	}
	if live != len(leases) {
		m.t.Fatalf("%d leases for %d assignments: %+v", len(leases), live, leases)
	}
}

// Two pools compete for one member cluster while messages are lost, reordered and
// repeated, leaders change and the agent restarts. The capacity is never exceeded,
// bindings do not evict each other repeatedly, and finally the pools agree with the
// cluster.
func TestLeases_TwoPoolsContendForOneMemberCluster(t *testing.T) {
	t.Parallel()
	rounds := soak.Count(25, 2000)
	evicted := 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(9, uint64(seed)))
		c := clock.NewVirtual(time.Unix(1, 0))
		pools := []*pool{newPool(t, "a", c), newPool(t, "b", c)}
		m := &agent{
			t: t, clock: c, stopAt: map[lease.Key]int64{}, lastIndex: map[string]uint64{}, updates: map[lease.Key]apply.AssignmentUpdate{},
			revoked: map[[2]string]bool{}, bindings: map[lease.Key]string{}, leases: lease.New(map[string]int64{"units": units}, 0),
		}
		late := map[string]*state.Snapshot{}
		for second := range 400 {
			faulty := second < 200
			c.AdvanceTo(c.Now().Add(time.Second))
			if r.IntN(40) == 0 && faulty {
				m.restart()
			}
			for _, p := range pools {
				switch n := r.IntN(60); {
				case !faulty:
				case n < 6:
					p.submit(r)
				case n < 9:
					p.stop(r)
				case n < 10:
					p.restart()
				}
				p.work()
				seen := p.store.Snapshot()
				if old := late[p.name]; old != nil && faulty && r.IntN(4) == 0 {
					seen = old
				}
				late[p.name] = p.store.Snapshot()
				if !faulty || r.IntN(3) > 0 {
					m.sync(p, seen, faulty && r.IntN(4) == 0)
				}
				p.work()
				m.check()
			}
		}
		m.checkConverged(pools)
		evicted += len(m.revoked)
	}
	if evicted == 0 {
		t.Error("no lease was revoked for another pool")
	}
}
