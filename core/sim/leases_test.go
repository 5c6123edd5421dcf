package sim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
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
)

const (
	shared = "shared" // the member cluster
	units  = 12
	grace  = int64(3e9)
	ttl    = int64(20e9)
)

// pool is a pool of servers: a state, and one worker on it.
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
		txn.SetConfig(&config)
		if err := txn.UpsertCluster(&model.Cluster{ID: shared, Capacity: model.Resources{"cpu": units}}); err != nil {
			t.Fatal(err)
		}
		return nil, nil
	})
	p.restart()
	return p
}

// restart has another server lead: of the queue only what the state holds is left.
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
		txn.UpsertEvals(evals...)
		evals = p.feed.Evals(txn.Commit(), p.now(), evals...)
	}
	return nil
}

// apply does what an entry of the pool's log would.
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
		if err := txn.UpsertBinding(b); err != nil {
			p.t.Fatal(err)
		}
		e := &model.Evaluation{ID: p.evalID(), Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding}
		txn.UpsertEvals(e)
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

// stop stops a binding of the pool, if it has any.
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

// member is the agent of the cluster that the pools share.
type member struct {
	t     *testing.T
	clock *clock.Virtual
	book  *lease.Manager
	over  map[lease.Key]int64                  // when what stops is gone
	told  map[string]uint64                    // index of the newest state that a pool told of
	news  map[lease.Key]apply.AssignmentUpdate // that the pool has yet to hear
	beat  map[[2]string]bool                   // who had whom revoked
	known map[lease.Key]string                 // bindings of leases
}

// restart forgets all but what the agent writes down.
func (m *member) restart() {
	leases, last := m.book.Leases()
	m.book = lease.New(map[string]int64{"units": units}, last, leases...)
}

// sync is one exchange with a pool: it tells what it wants, and is told what came
// of it, unless the answer is lost.
func (m *member) sync(p *pool, seen *state.Snapshot, lost bool) {
	now := m.clock.Now().UnixNano()
	if seen.Index() < m.told[p.name] {
		return // it was overtaken
	}
	m.told[p.name] = seen.Index()
	wanted := map[lease.Key]bool{}
	for a, b := range seen.ClusterWorkload(shared) {
		key := lease.Key{Pool: p.name, ID: a.ID}
		wanted[key] = true
		if _, dead := m.news[key]; !dead {
			m.carryOut(now, key, a, b)
		}
	}
	leases, _ := m.book.Leases()
	for _, l := range leases {
		if l.Pool == p.name {
			m.stopping(now, l, wanted[l.Key])
		}
	}
	for key := range m.news {
		if key.Pool == p.name && !wanted[key] {
			delete(m.news, key) // the pool knows
		}
	}
	if !lost {
		m.answer(now, p)
	}
}

func (m *member) carryOut(now int64, key lease.Key, a *model.Assignment, b *model.Binding) {
	if !a.Live() {
		if leases, _ := m.book.Leases(); !slices.ContainsFunc(leases, func(l lease.Lease) bool { return l.Key == key }) {
			m.news[key] = apply.AssignmentUpdate{ID: a.ID, Client: model.ClientComplete}
		} else if m.over[key] == 0 {
			m.over[key] = now + grace
		}
		return
	}
	m.known[key] = key.Pool + "/" + a.Binding.ID
	before, _ := m.book.Leases()
	l, err := m.book.Grant(now, lease.Request{
		Key: key, Resources: map[string]int64{"units": a.Vec[0]}, Priority: b.Priority, Evicts: b.Preempts, Grace: grace, TTL: ttl,
	})
	if err != nil {
		if !slices.ContainsFunc(before, func(l lease.Lease) bool { return l.Key == key }) {
			m.news[key] = apply.AssignmentUpdate{ID: a.ID, Client: model.ClientFailed, Text: err.Error()}
		}
		return
	}
	m.judge(before, l)
	_ = m.book.Start(now, key, l.Number) // else it waits for others to leave
}

// judge looks at whom a grant had revoked: of strictly lower priority, and nobody
// who ever had its binding revoked.
func (m *member) judge(before []lease.Lease, l lease.Lease) {
	after, _ := m.book.Leases()
	for _, old := range before {
		at := slices.IndexFunc(after, func(x lease.Lease) bool { return x.Key == old.Key })
		if old.State == lease.Stopping || at >= 0 && after[at].State != lease.Stopping {
			continue
		}
		winner, loser := m.known[l.Key], m.known[old.Key]
		if old.Priority >= l.Priority {
			m.t.Fatalf("%s of priority %d is revoked for %s of %d", loser, old.Priority, winner, l.Priority)
		}
		if m.beat[[2]string{loser, winner}] {
			m.t.Fatalf("%s and %s evict each other in turn", loser, winner)
		}
		m.beat[[2]string{winner, loser}] = true
	}
}

// stopping lets what was revoked, or is no longer wanted, go when its time has
// come.
func (m *member) stopping(now int64, l lease.Lease, wanted bool) {
	if m.over[l.Key] == 0 && (l.State == lease.Stopping || !wanted) {
		m.over[l.Key] = now + grace
	}
	if at := m.over[l.Key]; at == 0 || now < at {
		return
	}
	delete(m.over, l.Key)
	m.book.Release(l.Key, l.Number)
	client := model.ClientComplete
	if l.State == lease.Stopping {
		client = model.ClientFailed
	}
	m.news[l.Key] = apply.AssignmentUpdate{ID: l.ID, Client: client, Text: "revoked for another pool"}
}

// answer tells a pool what became of its work, and what is kept for others.
func (m *member) answer(now int64, p *pool) {
	p.apply(func(txn *state.Txn) ([]*model.Evaluation, []string) {
		var updates []apply.AssignmentUpdate
		for key, u := range m.news {
			if key.Pool == p.name {
				updates = append(updates, u)
			}
		}
		slices.SortFunc(updates, func(x, y apply.AssignmentUpdate) int { return strings.Compare(x.ID, y.ID) })
		var claims []*model.Claim
		for _, l := range m.book.ForeignLeases(now, p.name) {
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
		apply.Leases(txn, shared, claims)
		return evals, []string{shared}
	})
}

// check: nothing runs beyond the capacity, and nothing is promised twice.
func (m *member) check() {
	running, kept := int64(0), int64(0)
	leases, _ := m.book.Leases()
	for _, l := range leases {
		if l.State != lease.Reserved {
			running += l.Resources["units"]
		}
		if l.State != lease.Stopping {
			kept += l.Resources["units"]
		}
	}
	if running > units || kept > units {
		m.t.Fatalf("%d units run and %d are kept, of %d: %+v", running, kept, units, leases)
	}
}

// settled: what a pool believes to run does, and nothing else is kept.
func (m *member) settled(pools []*pool) {
	leases, _ := m.book.Leases()
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
				m.t.Fatalf("pool %s has %+v, and its cluster %+v", p.name, a, leases)
			}
		}
	}
	if live != len(leases) {
		m.t.Fatalf("%d leases for %d assignments: %+v", len(leases), live, leases)
	}
}

// Two pools contend for one member cluster while messages are lost, overtaken and
// repeated, leaders change and the agent restarts: nothing runs beyond the
// capacity, nobody evicts in turn, and in the end both agree with the cluster.
func TestLeases_TwoPoolsContendForOneMemberCluster(t *testing.T) {
	rounds := 25
	if os.Getenv("CEDE_SOAK") != "" {
		rounds = 2000
	}
	evicted := 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(9, uint64(seed)))
		c := clock.NewVirtual(time.Unix(1, 0))
		pools := []*pool{newPool(t, "a", c), newPool(t, "b", c)}
		m := &member{
			t: t, clock: c, over: map[lease.Key]int64{}, told: map[string]uint64{}, news: map[lease.Key]apply.AssignmentUpdate{},
			beat: map[[2]string]bool{}, known: map[lease.Key]string{}, book: lease.New(map[string]int64{"units": units}, 0),
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
		m.settled(pools)
		evicted += len(m.beat)
	}
	if evicted == 0 {
		t.Error("nobody evicted anybody of the other pool: nothing was tried")
	}
}
