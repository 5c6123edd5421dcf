package sim_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/unblock"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/worker"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// server assembles the parts of one server like the simulator, and checks every
// commit and every evaluation.
type server struct {
	t       *rapid.T
	store   *state.Store
	clock   *clock.Virtual
	broker  *broker.Broker
	feed    *worker.Feed
	applier *planner.Applier
	worker  *worker.Worker
	minimal bool // the active policy promises minimal victims
	rich    bool // jobs have rules between allocations
	guarded bool // taints, budgets, tolerations and all-or-none jobs are generated

	// reference repeats every evaluation without memory and with more workers.
	reference *scheduler.Scheduler
	expected  map[string]*scheduler.Outcome
	planned   map[string]*model.Plan

	before  *state.Snapshot
	evals   int
	placed  int
	evicted int
	// scaledDown counts victims whose group retained its minCount.
	scaledDown int
	blocked    int
}

func newServer(t *rapid.T, policies *policy.Set, minimal bool) *server {
	s := &server{
		t: t, store: state.New(), clock: clock.NewVirtual(time.Unix(0, 0)), minimal: minimal,
		expected: map[string]*scheduler.Outcome{}, planned: map[string]*model.Plan{},
	}
	var err error
	s.broker, err = broker.New(broker.Config{Clock: s.clock, Rand: rand.New(rand.NewPCG(1, 1))})
	must(err)
	s.feed = &worker.Feed{Broker: s.broker, Blocked: broker.NewBlocked(s.broker), Policies: policies}
	s.broker.Enable()
	s.applier = planner.NewApplier(planner.Config{
		Store: s.store, Committer: planner.DirectCommitter{Store: s.store, OnCommit: s.committed}, PlacementVerifier: &feasible.Verifier{},
	})
	s.worker = worker.New(worker.Config{
		Queue: worker.LocalQueue(s.broker), Planner: s, States: s.store, Evals: s, Clock: s.clock, NewEvalID: s.evalID, Observe: s.observe,
		Scheduler: scheduler.New(scheduler.Config{Policies: policies}),
	})
	s.reference = scheduler.New(scheduler.Config{Policies: policies, Forget: true, Workers: 4})
	return s
}

func (s *server) evalID() string {
	s.evals++
	return fmt.Sprintf("eval-%d", s.evals)
}

func (s *server) now() int64 { return s.clock.Now().UnixNano() }

// do commits an entry and enqueues the resulting evaluations.
func (s *server) do(write func(*state.Txn) []*model.Evaluation) *state.Snapshot {
	txn := s.store.Begin(s.store.Snapshot().Index() + 1)
	evals := write(txn)
	snap := txn.Commit()
	s.feed.Evals(snap, s.now(), evals...)
	return snap
}

// Submit implements worker.Planner. A plan based on the current state must be
// committed completely, and a scheduler without memory must return the same plan.
func (s *server) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	s.before = s.store.Snapshot()
	if plan.SnapshotIndex != s.before.Index() {
		s.t.Fatalf("plan is based on index %d, the state is at %d", plan.SnapshotIndex, s.before.Index())
	}
	out, err := s.reference.Process(s.before.Eval(plan.EvalID), s.before, s.now())
	must(err)
	if out.Fault != nil {
		s.t.Fatal(out.Fault)
	}
	s.expected[plan.EvalID] = out
	copied := *out.Plan
	copied.EvalToken = plan.EvalToken
	if got, want := planText(plan), planText(&copied); got != want {
		s.t.Fatalf("plan with memory\n%s\nwithout memory\n%s", got, want)
	}
	s.t.Logf("plan %s", planText(plan))
	result, err := s.applier.ApplyOne(plan)
	if err == nil && !result.FullyCommitted() {
		s.t.Fatalf("the applier rejects a plan based on the current state: %+v\n%s", result.Rejected, planText(plan))
	}
	return result, err
}

// planText returns the complete content of a plan.
func planText(p *model.Plan) string {
	text := fmt.Sprintf("%s of %s at %d, priority %d\n", p.EvalID, p.Job, p.SnapshotIndex, p.Priority)
	for _, g := range p.Groups {
		text += fmt.Sprintf("- evict %v stop %v\n", g.Evictions, g.Stops)
		for _, a := range g.Placements {
			text += fmt.Sprintf("  place %s v%d on %s %v over %v score %v saved %d\n", a.ID, a.Job.Version, a.NodeID, a.Devices, a.Preempted, a.Score, a.SavedWork)
		}
		for _, a := range g.Updates {
			text += fmt.Sprintf("  update %s v%d on %s\n", a.ID, a.Job.Version, a.NodeID)
		}
	}
	return text
}

// observe compares the outcome of an evaluation with that of a scheduler without
// memory.
func (s *server) observe(r worker.Report) {
	if r.Err != nil {
		s.t.Fatalf("evaluation %s of %s: %v", r.Eval.ID, r.Eval.JobID, r.Err)
	}
	want := s.expected[r.Eval.ID]
	delete(s.expected, r.Eval.ID)
	if want == nil {
		var err error
		want, err = s.reference.Process(r.Eval, s.store.Snapshot(), s.now())
		must(err)
		if !want.Plan.Empty() {
			s.t.Fatalf("empty plan with memory, without memory\n%s", planText(want.Plan))
		}
	}
	s.t.Logf("eval %s of %s (%s): fault %v, fails %s", r.Eval.ID, r.Eval.JobID, r.Eval.TriggeredBy, r.Outcome.Fault, failures(r.Outcome))
	if r.Outcome.Fault != nil {
		s.t.Fatalf("%s: %v", r.Eval.JobID, r.Outcome.Fault)
	}
	if got, want := failures(r.Outcome), failures(want); got != want {
		s.t.Fatalf("failures of %s with memory\n%s\nwithout memory\n%s", r.Eval.JobID, got, want)
	}
	for _, e := range r.Outcome.Failed {
		if !staleReasons && e.Nodes != s.store.Snapshot().NodeCount() {
			s.t.Fatalf("explanation of %s covers %d nodes", r.Eval.JobID, e.Nodes)
		}
	}
}

// staleReasons excludes reasons from the comparison. A remembered explanation may be
// older than the state: if a node drains later, it is still explained by the
// resources it lacked.
const staleReasons = true

func failures(o *scheduler.Outcome) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(o.Failed)) {
		why := o.Failed[name].String()
		if staleReasons {
			why = ""
		}
		text += fmt.Sprintf("%s %d: %s (%d waiting)\n", name, o.Queued[name], why, o.Failed[name].Waiting)
	}
	return text
}

// WriteEvals implements worker.Evals.
func (s *server) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	for len(evals) > 0 {
		txn := s.store.Begin(s.store.Snapshot().Index() + 1)
		txn.EvalWriter().Upsert(evals...)
		evals = s.feed.Evals(txn.Commit(), s.now(), evals...)
	}
	return nil
}

// committed checks every entry that holds plans.
func (s *server) committed(after *state.Snapshot, batch *apply.Batch, evals []*model.Evaluation) {
	var rooms, taken []string
	for _, bp := range batch.Plans {
		if len(bp.Groups) != len(bp.Plan.Groups) {
			s.t.Fatal("the entry dropped a commit group")
		}
		s.checkEvictions(after, bp.Plan)
		for _, i := range bp.Groups {
			g := &bp.Plan.Groups[i]
			for _, a := range g.Placements {
				s.placed++
				taken = append(taken, a.NodeID)
				s.checkRules(after, after.Alloc(a.ID))
			}
			for _, v := range g.Stops {
				rooms = append(rooms, s.before.Alloc(v.AllocID).NodeID)
			}
			for _, v := range g.Evictions {
				rooms = append(rooms, s.before.Alloc(v.AllocID).NodeID)
			}
			for _, u := range g.Updates {
				rooms = append(rooms, u.NodeID)
			}
		}
	}
	s.checkState(after)
	s.feed.Evals(after, s.now(), evals...)
	s.feed.Freed(after, s.now(), append(rooms, after.ChangedCohortNodes()...)...)
	s.feed.Placed(after, s.now(), taken...)
}

// checkState recomputes the use of every node.
func (s *server) checkState(snap *state.Snapshot) {
	if err := snap.Check(); err != nil {
		s.t.Fatal(err)
	}
	for n := range snap.Nodes() {
		if why := overfull(n, live(snap, n.ID), nil, nil); why != "" {
			s.t.Fatalf("node %s exceeds its %s", n.ID, why)
		}
	}
}

func live(snap *state.Snapshot, node string) []*model.Allocation {
	return slices.DeleteFunc(snap.AppendNodeAllocs(nil, node), func(a *model.Allocation) bool { return !a.Live() })
}

// overfull returns the resource that a node lacks for the allocations here and more,
// without those in gone. It returns "" if they fit.
func overfull(n *model.Node, here []*model.Allocation, gone map[string]bool, more []*model.Allocation) string {
	use, devices := map[string]int64{}, map[string]int32{}
	ports := map[uint16]bool{}
	for _, p := range n.Ports {
		ports[p] = true
	}
	for _, a := range append(slices.Clone(here), more...) {
		if gone[a.ID] {
			continue
		}
		for name, v := range a.Group.Resources {
			use[name] += v
		}
		for _, u := range a.Devices {
			devices[u.ID] += u.Count
		}
		for _, p := range a.Group.Ports {
			if ports[p] {
				return fmt.Sprintf("port %d", p)
			}
			ports[p] = true
		}
	}
	for name, v := range use {
		if v > n.Capacity[name]-n.Reserved[name] {
			return name
		}
	}
	for id, v := range devices {
		at := n.DevicePosition(id)
		if at < 0 || v > n.Devices[at].Count {
			return id
		}
	}
	return ""
}

// checkRules checks that a placement satisfies its constraints and those of other
// allocations.
func (s *server) checkRules(snap *state.Snapshot, a *model.Allocation) {
	node, g := snap.Node(a.NodeID), a.Group
	if !node.IsEligible() || len(g.Job.Datacenters) > 0 && !slices.Contains(g.Job.Datacenters, node.Datacenter) {
		s.t.Fatalf("%s is placed on ineligible node %s", a.ID, node.ID)
	}
	perProperty := map[string]int{}
	for other := range snap.Allocs() {
		if !other.Live() || other == a || snap.Node(other.NodeID) == nil {
			continue
		}
		if own := other.Job.Key() == a.Job.Key() && other.Group.Name == g.Name; own {
			for _, c := range g.Constraints {
				if c.Operator == model.OpDistinctHosts && other.NodeID == a.NodeID {
					s.t.Fatalf("%s shares its host with %s", a.ID, other.ID)
				}
			}
			if v, ok := snap.Node(other.NodeID).Attribute("zone"); ok {
				perProperty[v]++
			}
		}
		if g.Job.Type.PerNode() {
			continue // covered by TestSeparate_BindsSystemJobsToo
		}
		if mutuallyExclusive(g, other.Group, node, snap.Node(other.NodeID)) {
			s.t.Fatalf("%s conflicts with %s", a.ID, other.ID)
		}
	}
	for _, c := range g.Constraints {
		if c.Operator == model.OpDistinctProperty && perProperty[node.Attributes["zone"]] > 0 {
			s.t.Fatalf("%s shares its zone", a.ID)
		}
		if v, set := node.Attribute(c.Attribute); !c.Operator.CountsAllocations() && !c.Holds(v, set) {
			s.t.Fatalf("%s on %s violates %s", a.ID, node.ID, c.String())
		}
	}
}

// retryDeferred enqueues evaluations that were deferred in favour of others. It
// returns false if there are none.
func (s *server) retryDeferred() bool {
	snap := s.store.Snapshot()
	return s.feed.Budgets(snap, s.now()) || s.feed.RetryDeferred(snap, s.now())
}

// drain processes all ready evaluations, then checks the remaining ones.
func (s *server) drain() {
	for i := 0; ; i++ {
		d, ok := s.broker.TryDequeue(nil)
		if !ok && !s.retryDeferred() {
			break
		}
		if !ok {
			continue
		}
		if i > 2000 {
			s.t.Fatal("evaluations do not end")
		}
		if err := s.worker.Work(context.Background(), d); err != nil {
			s.t.Fatal(err)
		}
		for ends := s.feed.Reap(s.now()); len(ends) > 0; ends = s.feed.Reap(s.now()) {
			must(s.WriteEvals(context.Background(), broker.Delivery{}, ends...))
		}
	}
	stats := s.broker.Stats()
	if c := stats.Total(); c.Ready+c.Unacked+c.Pending+c.Backoff+c.Failed > 0 {
		s.t.Fatalf("evaluations left in the broker: %+v", c)
	}
	snap := s.store.Snapshot()
	for e := range snap.Evals() {
		switch e.Status {
		case model.EvalComplete, model.EvalFailed, model.EvalCancelled:
		case model.EvalPending:
			if e.TriggeredBy != model.TriggerRecheck || e.WaitUntil <= s.now() {
				s.t.Fatalf("evaluation %s of %s is pending without a trigger", e.ID, e.JobID)
			}
		case model.EvalBlocked:
			s.blocked++
			s.checkBlocked(snap, e)
		default:
			s.t.Fatalf("evaluation %s of %s has status %s", e.ID, e.JobID, e.Status)
		}
	}
}

// checkBlocked checks the unblock filter and the blocked evaluations: a blocked
// evaluation must not be placeable.
func (s *server) checkBlocked(snap *state.Snapshot, e *model.Evaluation) {
	if j := snap.Job(e.JobKey()); j != nil && j.AllAtOnce && (s.rich || len(j.Groups) > 1) {
		return // gangs of several groups are placed greedily: any change may make them fit
	}
	out, err := s.reference.Process(e, snap, s.now())
	must(err)
	for _, g := range out.Plan.Groups {
		if len(g.Placements) > 0 {
			filter := &unblock.Filter{Snap: snap, Policies: s.feed.Policies.Pin(), Now: s.now()}
			for n := range snap.Nodes() {
				eligible, seen := e.Classes[n.ClassKey]
				s.t.Logf("%s: filter may place: %t; class eligible %t, seen %t, escaped %t, blocked on %v since %d",
					n.ID, filter.MayPlace(e, n.ID, new(any)), eligible, seen, e.Escaped, e.BlockedNodes, e.SnapshotIndex)
			}
			s.t.Fatalf("%s is blocked but can be placed\n%s", e.JobID, planText(out.Plan))
		}
	}
}

// step applies a random change.
func (s *server) step(d generator, jobs, nodes []string, rich bool) {
	now := s.now()
	snap := s.store.Snapshot()
	switch kind := d.IntN(16); {
	case kind < 7: // submit, or submit a newer version
		id := pick(d, jobs...)
		s.do(func(txn *state.Txn) []*model.Evaluation {
			j := d.job(id, rich)
			if s.guarded {
				d.addGuards(j)
			}
			if old := txn.Job(j.Key()); old != nil && !old.Stopped {
				j = d.nextVersion(old, j)
			} else if old != nil {
				j.Version = old.Version + 1
			}
			must(txn.JobWriter().Upsert(j))
			s.t.Logf("submit %+v", *j)
			for _, g := range j.Groups {
				s.t.Logf("  group %s count %d %v ports %v devices %v labels %v constraints %v separate %v spread %v", g.Name, g.Count, g.Resources, g.Ports, g.Devices, g.Labels, g.Constraints, g.Separate, g.Spread)
			}
			e := coretest.Eval(j)
			e.ID, e.CreateTime = s.evalID(), now
			txn.EvalWriter().Upsert(e)
			return []*model.Evaluation{e}
		})
	case kind < 8: // stop
		old := snap.Job(model.JobKey{Namespace: "default", ID: pick(d, jobs...)})
		if old == nil || old.Stopped {
			return
		}
		s.do(func(txn *state.Txn) []*model.Evaluation {
			j := *old
			j.Stopped = true
			must(txn.JobWriter().Upsert(&j))
			e := coretest.Eval(&j)
			e.ID = s.evalID()
			txn.EvalWriter().Upsert(e)
			return []*model.Evaluation{e}
		})
	case kind < 9 && s.guarded: // placed allocations start
		s.do(func(txn *state.Txn) []*model.Evaluation {
			var updates []apply.ClientUpdate
			for a := range snap.Allocs() {
				if a.Live() && !a.Started {
					updates = append(updates, apply.ClientUpdate{AllocID: a.ID, Status: model.ClientRunning, Started: true, StartTime: now})
				}
			}
			return apply.ClientUpdates(txn, now, updates)
		})
	case kind < 10 && s.guarded: // a budget changes
		s.do(func(txn *state.Txn) []*model.Evaluation {
			txn.BudgetWriter().Upsert(d.budget(pick(d, "x", "y")))
			return nil
		})
	case kind < 12: // an instance ends
		all := slices.DeleteFunc(slices.Collect(snap.Allocs()), func(a *model.Allocation) bool { return a.Client.Terminal() })
		if len(all) == 0 {
			return
		}
		a := pick(d, all...)
		s.t.Logf("%s ends", a.ID)
		after := s.do(func(txn *state.Txn) []*model.Evaluation {
			return apply.ClientUpdates(txn, now, []apply.ClientUpdate{{AllocID: a.ID, Status: pick(d, model.ClientComplete, model.ClientFailed)}})
		})
		s.feed.Freed(after, now, append(after.ChangedCohortNodes(), a.NodeID)...)
	default: // a node changes
		id := pick(d, nodes...)
		s.t.Logf("%s changes", id)
		yes, no, up, down := true, false, model.NodeReady, model.NodeDown
		change := pick(d, apply.NodeChange{Status: &up, Drain: &no, Ineligible: &no}, apply.NodeChange{Status: &up, Drain: &no, Ineligible: &no},
			apply.NodeChange{Status: &down}, apply.NodeChange{Drain: &yes}, apply.NodeChange{Ineligible: &yes})
		after := s.do(func(txn *state.Txn) []*model.Evaluation { return apply.NodeStatus(txn, now, []string{id}, change) })
		s.feed.Freed(after, now, id)
	}
}

// After random changes to a small cluster, no node exceeds its capacity, no
// allocation is evicted by an equal priority or unnecessarily, every evaluation ends,
// blocked jobs cannot be placed, memory and workers do not change results, and the
// applier accepts every plan based on the current state.
func TestServer_Invariants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		rich    bool
		minimal bool
		guarded bool
	}{
		{"default", false, true, false},
		{"default", true, true, false},
		{"nomad", true, false, false},
		{"default", true, true, true},
		{"kubernetes", false, true, true},
		{"kubernetes", true, true, true},
	} {
		t.Run(fmt.Sprintf("%s rich=%t guarded=%t", c.name, c.rich, c.guarded), func(t *testing.T) {
			policies := coretest.Policies(func() sdk.Policy { return nomad.New() }, func() sdk.Policy { return kubernetes.New() })
			placed, evicted, blocked, scaledDown := 0, 0, 0, 0
			for range soak.Count(1, 250) {
				rapid.Check(t, func(t *rapid.T) {
					d := drawGenerator(t)
					s := newServer(t, policies, c.minimal)
					s.rich, s.guarded = c.rich, c.guarded
					nodes := []string{"n0", "n1", "n2", "n3"}[:d.in(1, 4)]
					s.do(func(txn *state.Txn) []*model.Evaluation {
						config := coretest.AllPreempt()
						config.Policy = c.name
						config.Algorithm = pick(d, model.Binpack, model.SpreadRank)
						txn.ConfigWriter().Set(config)
						for _, id := range nodes {
							n := d.node(id)
							if c.guarded && d.oneIn(3) {
								n.Taints = []model.Taint{{Key: "spot", Effect: pick(d, model.NoSchedule, model.PreferNoSchedule)}}
							}
							s.t.Logf("node %+v", *n)
							must(txn.NodeWriter().Upsert(n))
						}
						return nil
					})
					jobs := []string{"a", "b", "c", "d", "e", "f"}
					for range rapid.IntRange(1, 14).Draw(t, "steps") {
						for range d.in(1, 2) {
							s.step(d, jobs, nodes, c.rich)
						}
						s.clock.AdvanceTo(s.clock.Now().Add(time.Second))
						s.drain()
					}
					placed, evicted, blocked = placed+s.placed, evicted+s.evicted, blocked+s.blocked
					scaledDown += s.scaledDown
				})
			}
			t.Logf("%d placed, %d evicted, %d of them from cohorts that remain, %d blocked", placed, evicted, scaledDown, blocked)
			if placed == 0 || evicted == 0 || blocked == 0 {
				t.Error("the property was not exercised")
			}
		})
	}
}
