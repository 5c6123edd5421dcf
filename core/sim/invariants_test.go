package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
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
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/worker"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// soak multiplies a test's count when CEDE_SOAK=1.
func soak(n int) int {
	if os.Getenv("CEDE_SOAK") != "" {
		return n * 50
	}
	return n
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// dice draws details evenly, which rapid does not: it prefers small values, and
// an almost empty cluster shows nothing.
type dice struct{ *rand.Rand }

func drawDice(t *rapid.T) dice {
	return dice{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "details"), rapid.Uint64().Draw(t, "more details")))}
}

func (d dice) in(least, most int) int { return least + d.IntN(most-least+1) }
func (d dice) oneIn(n int) bool       { return d.IntN(n) == 0 }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// server is one server's parts as the simulator puts them together, with eyes
// on every commit and on every evaluation.
type server struct {
	t       *rapid.T
	store   *state.Store
	clock   *clock.Virtual
	broker  *broker.Broker
	feed    *worker.Feed
	applier *planner.Applier
	worker  *worker.Worker
	minimal bool // the policy at work promises minimal victims
	rich    bool // jobs have rules between allocations
	guarded bool // there are taints, budgets, tolerations, jobs that go whole

	// oracle plans everything again, without memory and with more workers.
	oracle   *scheduler.Scheduler
	expected map[string]*scheduler.Outcome
	planned  map[string]*model.Plan

	before  *state.Snapshot
	evals   int
	placed  int
	evicted int
	blocked int
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
		Store: s.store, Committer: planner.Direct{Store: s.store, Observe: s.committed}, Rules: &scheduler.CommitRules{},
	})
	s.worker = worker.New(worker.Config{
		Broker: s.broker, Planner: s, States: s.store, Evals: s, Clock: s.clock, NewEvalID: s.evalID, Observe: s.observe,
		Scheduler: scheduler.New(scheduler.Config{Policies: policies}),
	})
	s.oracle = scheduler.New(scheduler.Config{Policies: policies, Forget: true, Workers: 4})
	return s
}

func (s *server) evalID() string {
	s.evals++
	return fmt.Sprintf("eval-%d", s.evals)
}

func (s *server) now() int64 { return s.clock.Now().UnixNano() }

// do writes an entry and feeds on what follows from it.
func (s *server) do(write func(*state.Txn) []*model.Evaluation) *state.Snapshot {
	txn := s.store.Begin(s.store.Snapshot().Index() + 1)
	evals := write(txn)
	snap := txn.Commit()
	s.feed.Evals(snap, s.now(), evals...)
	return snap
}

// Submit implements worker.Planner. What the scheduler built on this very state
// holds on it, and a scheduler without memory builds the same.
func (s *server) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	s.before = s.store.Snapshot()
	if plan.SnapshotIndex != s.before.Index() {
		s.t.Fatalf("planned at %d, the state is at %d", plan.SnapshotIndex, s.before.Index())
	}
	out, err := s.oracle.Process(s.before.Eval(plan.EvalID), s.before, s.now())
	must(err)
	if out.Fault != nil {
		s.t.Fatal(out.Fault)
	}
	s.expected[plan.EvalID] = out
	copied := *out.Plan
	copied.EvalToken = plan.EvalToken
	if got, want := inWords(plan), inWords(&copied); got != want {
		s.t.Fatalf("with memory\n%s\nwithout\n%s", got, want)
	}
	s.t.Logf("plan %s", inWords(plan))
	result, err := s.applier.ApplyOne(plan)
	if err == nil && !result.Full() {
		s.t.Fatalf("the applier rejects what was built on the same state: %+v\n%s", result.Rejected, inWords(plan))
	}
	return result, err
}

// inWords is everything that a plan says.
func inWords(p *model.Plan) string {
	text := fmt.Sprintf("%s of %s at %d, priority %d\n", p.EvalID, p.Job, p.SnapshotIndex, p.Priority)
	for _, g := range p.Groups {
		text += fmt.Sprintf("- evict %v stop %v\n", g.Evict, g.Stop)
		for _, a := range g.Place {
			text += fmt.Sprintf("  place %s v%d on %s %v over %v score %v saved %d\n", a.ID, a.Job.Version, a.NodeID, a.Devices, a.Preempted, a.Score, a.SavedWork)
		}
		for _, a := range g.Update {
			text += fmt.Sprintf("  update %s v%d on %s\n", a.ID, a.Job.Version, a.NodeID)
		}
	}
	return text
}

// observe compares what an evaluation came to with what one without memory does.
func (s *server) observe(r worker.Report) {
	if r.Err != nil {
		s.t.Fatalf("evaluation %s of %s: %v", r.Eval.ID, r.Eval.JobID, r.Err)
	}
	want := s.expected[r.Eval.ID]
	delete(s.expected, r.Eval.ID)
	if want == nil {
		var err error
		want, err = s.oracle.Process(r.Eval, s.store.Snapshot(), s.now())
		must(err)
		if !want.Plan.Empty() {
			s.t.Fatalf("with memory nothing, without\n%s", inWords(want.Plan))
		}
	}
	s.t.Logf("eval %s of %s (%s): fault %v, fails %s", r.Eval.ID, r.Eval.JobID, r.Eval.TriggeredBy, r.Outcome.Fault, failures(r.Outcome))
	if r.Outcome.Fault != nil {
		s.t.Fatalf("%s: %v", r.Eval.JobID, r.Outcome.Fault)
	}
	if got, want := failures(r.Outcome), failures(want); got != want {
		s.t.Fatalf("%s fails with memory\n%s\nwithout\n%s", r.Eval.JobID, got, want)
	}
	for _, e := range r.Outcome.Failed {
		if !staleReasons && e.Nodes != s.store.Snapshot().NodeCount() {
			s.t.Fatalf("%s is explained over %d nodes", r.Eval.JobID, e.Nodes)
		}
	}
}

// staleReasons leaves reasons out of the comparison.
//
// Plans alone are compared, since a remembered explanation may be older: a node that
// drains since is still explained by what it lacked.
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
func (s *server) WriteEvals(_ context.Context, evals ...*model.Evaluation) error {
	for len(evals) > 0 {
		txn := s.store.Begin(s.store.Snapshot().Index() + 1)
		txn.UpsertEvals(evals...)
		evals = s.feed.Evals(txn.Commit(), s.now(), evals...)
	}
	return nil
}

// committed looks at every entry that holds plans.
func (s *server) committed(after *state.Snapshot, batch *state.Batch, evals []*model.Evaluation) {
	var rooms, taken []string
	for _, bp := range batch.Plans {
		if len(bp.Groups) != len(bp.Plan.Groups) {
			s.t.Fatal("a group was dropped")
		}
		s.checkEvictions(after, bp.Plan)
		for _, i := range bp.Groups {
			g := &bp.Plan.Groups[i]
			for _, a := range g.Place {
				s.placed++
				taken = append(taken, a.NodeID)
				s.checkRules(after, after.Alloc(a.ID))
			}
			for _, v := range g.Stop {
				rooms = append(rooms, s.before.Alloc(v.AllocID).NodeID)
			}
			for _, v := range g.Evict {
				rooms = append(rooms, s.before.Alloc(v.AllocID).NodeID)
			}
			for _, u := range g.Update {
				rooms = append(rooms, u.NodeID)
			}
		}
	}
	s.checkState(after)
	s.feed.Evals(after, s.now(), evals...)
	s.feed.Room(after, s.now(), rooms...)
	s.feed.Placed(after, s.now(), taken...)
}

// checkState recomputes what is used of every node.
func (s *server) checkState(snap *state.Snapshot) {
	if err := snap.Check(); err != nil {
		s.t.Fatal(err)
	}
	for n := range snap.Nodes() {
		if why := overfull(n, live(snap, n.ID), nil, nil); why != "" {
			s.t.Fatalf("node %s is over its %s", n.ID, why)
		}
	}
}

func live(snap *state.Snapshot, node string) []*model.Allocation {
	return slices.DeleteFunc(snap.AppendNodeAllocs(nil, node), func(a *model.Allocation) bool { return !a.Live() })
}

// overfull names what a node with these allocations, without some and with
// others, has too little of.
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

// checkEvictions goes through a plan step by step: nobody goes without a
// placement of the same plan on the same node, at or above its priority, or in
// vain.
func (s *server) checkEvictions(after *state.Snapshot, plan *model.Plan) {
	gone := map[string]bool{}
	var more []*model.Allocation
	stops := false
	for i := range plan.Groups {
		g := &plan.Groups[i]
		stops = stops || len(g.Stop)+len(g.Update) > 0
	}
	s.checkBudgets(after, plan)
	served := map[*model.CommitGroup]int{}
	for _, p := range inOrder(plan) {
		a, g := p.alloc, p.group
		node := after.Node(a.NodeID)
		var victims []*model.Allocation
		for _, e := range g.Evict {
			if e.By == a.ID {
				victims = append(victims, s.before.Alloc(e.AllocID))
			}
		}
		served[g] += len(victims)
		for _, v := range victims {
			s.evicted++
			_, spared := v.Job.Spares(v, a.Job.Priority, plan.Now)
			if !v.Live() || gone[v.ID] || v.Job.Priority >= a.Job.Priority || v.Job.Key() == a.Job.Key() || v.Job.NonPreemptible || spared {
				s.t.Fatalf("%s (%d) may not be evicted for %s (%d)", v.ID, v.Job.Priority, a.ID, a.Job.Priority)
			}
			if !s.concerns(a, v) && !slices.ContainsFunc(victims, func(w *model.Allocation) bool {
				return v.Job.EvictedWhole && w.Job.Key() == v.Job.Key() && s.concerns(a, w)
			}) {
				s.t.Fatalf("%s is on %s, and evicted for %s on %s", v.ID, v.NodeID, a.ID, a.NodeID)
			}
			if a.Job.NeverPreempts || e2(after.EvalsOfJob(v.Job.Key()), after.Index()) == nil {
				s.t.Fatalf("%s is evicted by one that never preempts, or nothing follows", v.ID)
			}
			if got := after.Alloc(v.ID); got.Desired != model.DesiredEvict || got.PreemptedBy != a.ID {
				s.t.Fatalf("%s is %s by %q", v.ID, got.Desired, got.PreemptedBy)
			}
			gone[v.ID] = true
		}
		if len(victims) != len(after.Alloc(a.ID).Preempted) {
			s.t.Fatalf("%s lists %v", a.ID, after.Alloc(a.ID).Preempted)
		}
		more = append(more, a)
		on := slices.DeleteFunc(slices.Clone(more), func(a *model.Allocation) bool { return a.NodeID != node.ID })
		for _, v := range victims {
			if stops || !s.minimal || s.guarded && a.Job.Type.PerNode() {
				break // room may come from elsewhere, in an order that the plan does not tell
			}
			mates := []*model.Allocation{v}
			if v.Job.EvictedWhole {
				mates = slices.DeleteFunc(slices.Clone(victims), func(w *model.Allocation) bool { return w.Job.Key() != v.Job.Key() })
			}
			apartFrom := false
			for _, w := range mates {
				gone[w.ID] = false
				apartFrom = apartFrom || apart(a.Group, w.Group, node, s.before.Node(w.NodeID))
			}
			if overfull(node, live(s.before, node.ID), gone, on) == "" && !apartFrom {
				s.t.Fatalf("%s is evicted for %s in vain\n%s", v.ID, a.ID, inWords(plan))
			}
			for _, w := range mates {
				gone[w.ID] = true
			}
		}
	}
	for i := range plan.Groups {
		if g := &plan.Groups[i]; served[g] != len(g.Evict) {
			s.t.Fatalf("somebody is evicted for no placement\n%s", inWords(plan))
		}
	}
}

// placed is a placement and the commit group that it is in.
type placed struct {
	alloc *model.Allocation
	group *model.CommitGroup
}

// inOrder is the placements of a plan as a scheduler makes them.
func inOrder(plan *model.Plan) (list []placed) {
	for i := range plan.Groups {
		for _, a := range plan.Groups[i].Place {
			list = append(list, placed{a, &plan.Groups[i]})
		}
	}
	slices.SortStableFunc(list, func(p, q placed) int {
		if p.alloc.Job.Type.PerNode() {
			return 0
		}
		return cmp.Or(cmp.Compare(p.alloc.Group.Position, q.alloc.Group.Position), cmp.Compare(p.alloc.Index, q.alloc.Index))
	})
	return list
}

// concerns is whether a victim makes room on the node of a placement, or keeps it
// out from another one.
func (s *server) concerns(a, victim *model.Allocation) bool {
	return victim.NodeID == a.NodeID || apart(a.Group, victim.Group, s.before.Node(a.NodeID), s.before.Node(victim.NodeID))
}

// checkBudgets looks at what a plan takes from budgets, and whom it leaves behind.
func (s *server) checkBudgets(after *state.Snapshot, plan *model.Plan) {
	lost := map[*model.Budget]int{}
	for i := range plan.Groups {
		for _, e := range plan.Groups[i].Evict {
			v := s.before.Alloc(e.AllocID)
			for _, b := range s.before.Budgets() {
				if v.Available() && b.Matches(v.Group) {
					lost[b]++
				}
			}
			if !v.Job.EvictedWhole {
				continue
			}
			for _, mate := range s.before.AppendJobAllocs(nil, v.Job.Key()) {
				if mate.Live() && after.Alloc(mate.ID).Live() {
					s.t.Fatalf("%s is evicted without %s", v.ID, mate.ID)
				}
			}
		}
	}
	for at, b := range s.before.Budgets() {
		if b.Strict && lost[b] > max(0, s.before.BudgetSlack(int32(at))) {
			s.t.Fatalf("budget %s has %d left and loses %d\n%s", b.Name, s.before.BudgetSlack(int32(at)), lost[b], inWords(plan))
		}
	}
}

// e2 finds the evaluation of an index.
func e2(evals []*model.Evaluation, index uint64) *model.Evaluation {
	for _, e := range evals {
		if e.CreateIndex == index {
			return e
		}
	}
	return nil
}

// apart is whether two groups exclude one another on these nodes.
func apart(a, b *model.Group, on, other *model.Node) bool {
	if a.Job.Namespace != b.Job.Namespace {
		return false
	}
	excludes := func(a, b *model.Group) bool {
		return slices.ContainsFunc(a.Separate, func(t model.LabelTerm) bool {
			x, ok := on.Domain(t.TopologyKey)
			y, too := other.Domain(t.TopologyKey)
			return t.Matches(b.Labels) && ok && too && x == y
		})
	}
	return excludes(a, b) || excludes(b, a)
}

// checkRules asks of a placement what its constraints and others' say.
func (s *server) checkRules(snap *state.Snapshot, a *model.Allocation) {
	node, g := snap.Node(a.NodeID), a.Group
	if !node.Schedulable() || len(g.Job.Datacenters) > 0 && !slices.Contains(g.Job.Datacenters, node.Datacenter) {
		s.t.Fatalf("%s is on %s", a.ID, node.ID)
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
			continue // TestSeparate_BindsSystemJobsToo looks at these
		}
		if apart(g, other.Group, node, snap.Node(other.NodeID)) {
			s.t.Fatalf("%s is beside %s", a.ID, other.ID)
		}
	}
	for _, c := range g.Constraints {
		if c.Operator == model.OpDistinctProperty && perProperty[node.Attributes["zone"]] > 0 {
			s.t.Fatalf("%s shares its zone", a.ID)
		}
		if v, set := node.Attribute(c.Attribute); !c.Operator.Counts() && !c.Holds(v, set) {
			s.t.Fatalf("%s is on %s in spite of %s", a.ID, node.ID, c.String())
		}
	}
}

// settle asks those again who were turned away in favour of others.
func (s *server) settle() bool {
	snap := s.store.Snapshot()
	return s.feed.Budgets(snap, s.now()) || s.feed.Settle(snap, s.now())
}

// drain works until nothing is ready, and looks at what is left.
func (s *server) drain() {
	for i := 0; ; i++ {
		d, ok := s.broker.TryDequeue(nil)
		if !ok && !s.settle() {
			break
		}
		if !ok {
			continue
		}
		if i > 2000 {
			s.t.Fatal("it does not come to an end")
		}
		if err := s.worker.Work(context.Background(), d); err != nil {
			s.t.Fatal(err)
		}
		for ends := s.feed.Reap(s.now()); len(ends) > 0; ends = s.feed.Reap(s.now()) {
			must(s.WriteEvals(context.Background(), ends...))
		}
	}
	stats := s.broker.Stats()
	if c := stats.Total(); c.Ready+c.Unacked+c.Pending+c.Delayed+c.Backoff+c.Failed > 0 {
		s.t.Fatalf("left over: %+v", c)
	}
	snap := s.store.Snapshot()
	for e := range snap.Evals() {
		switch e.Status {
		case model.EvalComplete, model.EvalFailed, model.EvalCancelled:
		case model.EvalBlocked:
			s.blocked++
			s.checkBlocked(snap, e)
		default:
			s.t.Fatalf("%s of %s ends %s", e.ID, e.JobID, e.Status)
		}
	}
}

// checkBlocked is what a screen and a tracker must not get wrong: an evaluation
// that waits could place nothing now.
func (s *server) checkBlocked(snap *state.Snapshot, e *model.Evaluation) {
	if j := snap.Job(e.JobKey()); j != nil && j.AllAtOnce && (s.rich || len(j.Groups) > 1) {
		return // gangs of several groups are placed greedily: anything may change what fits together
	}
	out, err := s.oracle.Process(e, snap, s.now())
	must(err)
	for _, g := range out.Plan.Groups {
		if len(g.Place) > 0 {
			screen := &scheduler.Screen{Snap: snap, Policies: s.feed.Policies.Pin(), Now: s.now()}
			for n := range snap.Nodes() {
				eligible, seen := e.Classes[n.ClassKey]
				s.t.Logf("%s: screen lets it in: %t; class eligible %t, seen %t, escaped %t, blocked on %v since %d",
					n.ID, screen.MayPlace(e, n.ID), eligible, seen, e.Escaped, e.BlockedNodes, e.SnapshotIndex)
			}
			s.t.Fatalf("%s waits and could be placed\n%s", e.JobID, inWords(out.Plan))
		}
	}
}

func (d dice) job(id string, rich bool) *model.Job {
	b := coretest.Job(id).Priority(int32(d.in(0, 9) * 10))
	j := b.Obj()
	j.Type = map[string]model.JobType{"c": model.JobBatch, "d": model.JobSystem, "e": model.JobSysBatch}[id]
	j.NeverPreempts, j.NonPreemptible = d.oneIn(8), d.oneIn(8)
	if d.oneIn(6) {
		j.Datacenters = []string{pick(d, "dc1", "dc2")}
	}
	j.AllAtOnce = !j.Type.PerNode() && d.oneIn(5)
	j.Groups = j.Groups[:0]
	for i := range d.in(1, 2) {
		g := &model.Group{Name: fmt.Sprintf("g%d", i), Count: d.in(1, 4), MaxParallelEvictions: d.in(0, 2)}
		if j.Type.PerNode() {
			g.Count = 1
		}
		g.Resources = model.Resources{"cpu": int64(d.in(0, 6)), "memory": int64(d.in(0, 6)), "licence": int64(d.in(0, 1))}
		if d.oneIn(6) {
			g.Ports = []uint16{uint16(d.in(80, 81))}
		}
		if d.oneIn(5) {
			g.Devices = []model.DeviceRequest{{ID: pick(d, "gpu", "acme/gpu/b"), Count: int32(d.in(1, 2))}}
		}
		if d.oneIn(4) {
			g.Constraints = append(g.Constraints, pick(d,
				model.Constraint{Attribute: "zone", Operator: model.OpEqual, Value: "a"},
				model.Constraint{Attribute: "zone", Operator: model.OpIsSet},
				model.Constraint{Attribute: "node.id", Operator: model.OpNotEqual, Value: "n1"}))
		}
		if rich && !j.Type.PerNode() {
			d.rules(g)
		}
		j.Groups = append(j.Groups, g)
	}
	return j
}

// guard says who may be evicted, and adds what budgets and taints go by.
func (d dice) guard(j *model.Job) {
	j.EvictedWhole = d.oneIn(4)
	if d.oneIn(5) {
		j.Toleration = &model.PreemptionToleration{MinPreemptorPriority: new(int32(d.in(3, 9) * 10))}
	}
	for _, g := range j.Groups {
		if g.Labels == nil {
			g.Labels = map[string]string{}
		}
		g.Labels["tier"] = pick(d, "x", "y")
		if d.oneIn(2) {
			g.Tolerations = []model.Toleration{{Key: "spot", Operator: model.TolerationExists}}
		}
	}
}

func (d dice) budget(name string) *model.Budget {
	b := &model.Budget{
		Namespace: model.DefaultNamespace, Name: name, Strict: !d.oneIn(3), Labels: map[string]string{"tier": name},
	}
	if d.oneIn(2) {
		b.MinAvailable = &model.Bound{Number: int32(d.in(0, 4))}
	} else {
		b.MaxUnavailable = &model.Bound{Number: int32(d.in(0, 100)), Percent: true}
	}
	return b
}

// rules between allocations.
func (d dice) rules(g *model.Group) {
	app := func() map[string]string { return map[string]string{"app": pick(d, "x", "y")} }
	if d.oneIn(2) {
		g.Labels = app()
	}
	switch d.IntN(8) {
	case 0:
		g.Constraints = append(g.Constraints, model.Constraint{Operator: model.OpDistinctHosts})
	case 1:
		g.Constraints = append(g.Constraints, model.Constraint{Operator: model.OpDistinctProperty, Attribute: "zone"})
	case 2:
		g.Separate = []model.LabelTerm{{Labels: app(), TopologyKey: pick(d, "node", "node", "zone")}}
	case 3:
		g.Spread = []model.Spread{{Attribute: "zone", Weight: 50, MaxSkew: d.in(0, 2)}}
	case 4:
		g.Affinities = []model.Affinity{{Constraint: model.Constraint{Attribute: "zone", Operator: model.OpEqual, Value: "b"}, Weight: d.in(-100, 100)}}
	}
}

func (d dice) node(id string) *model.Node {
	n := &model.Node{
		ID: id, Datacenter: pick(d, "dc1", "dc1", "dc2"),
		Capacity:   model.Resources{"cpu": int64(d.in(4, 14)), "memory": int64(d.in(4, 14)), "licence": 4},
		Attributes: map[string]string{"zone": pick(d, "a", "b")},
	}
	if d.oneIn(3) {
		n.Devices = []model.Device{{ID: "acme/gpu/a", Count: int32(d.in(1, 3))}, {ID: "acme/gpu/b", Count: int32(d.in(1, 3))}}
	}
	return n
}

// step lets something happen.
func (s *server) step(d dice, jobs, nodes []string, rich bool) {
	now := s.now()
	snap := s.store.Snapshot()
	switch kind := d.IntN(16); {
	case kind < 7: // submit, or submit a newer version
		id := pick(d, jobs...)
		s.do(func(txn *state.Txn) []*model.Evaluation {
			j := d.job(id, rich)
			if s.guarded {
				d.guard(j)
			}
			if old := txn.Job(j.Key()); old != nil && !old.Stopped {
				j = d.next(old, j)
			} else if old != nil {
				j.Version = old.Version + 1
			}
			must(txn.UpsertJob(j))
			s.t.Logf("submit %+v", *j)
			for _, g := range j.Groups {
				s.t.Logf("  group %s count %d %v ports %v devices %v labels %v constraints %v separate %v spread %v", g.Name, g.Count, g.Resources, g.Ports, g.Devices, g.Labels, g.Constraints, g.Separate, g.Spread)
			}
			e := coretest.Eval(j)
			e.ID, e.CreateTime = s.evalID(), now
			txn.UpsertEvals(e)
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
			must(txn.UpsertJob(&j))
			e := coretest.Eval(&j)
			e.ID = s.evalID()
			txn.UpsertEvals(e)
			return []*model.Evaluation{e}
		})
	case kind < 9 && s.guarded: // what was placed begins to work
		s.do(func(txn *state.Txn) []*model.Evaluation {
			var updates []state.ClientUpdate
			for a := range snap.Allocs() {
				if a.Live() && !a.Started {
					updates = append(updates, state.ClientUpdate{AllocID: a.ID, Status: model.ClientRunning, Started: true, StartTime: now})
				}
			}
			return txn.ApplyClientUpdates(now, updates)
		})
	case kind < 10 && s.guarded: // a budget is changed
		s.do(func(txn *state.Txn) []*model.Evaluation {
			txn.UpsertBudget(d.budget(pick(d, "x", "y")))
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
			return txn.ApplyClientUpdates(now, []state.ClientUpdate{{AllocID: a.ID, Status: pick(d, model.ClientComplete, model.ClientFailed)}})
		})
		s.feed.Room(after, now, a.NodeID)
	default: // a node changes
		id := pick(d, nodes...)
		s.t.Logf("%s changes", id)
		yes, no, up, down := true, false, model.NodeReady, model.NodeDown
		change := pick(d, state.NodeChange{Status: &up, Drain: &no, Ineligible: &no}, state.NodeChange{Status: &up, Drain: &no, Ineligible: &no},
			state.NodeChange{Status: &down}, state.NodeChange{Drain: &yes}, state.NodeChange{Ineligible: &yes})
		after := s.do(func(txn *state.Txn) []*model.Evaluation { return txn.ApplyNodeStatus(now, []string{id}, change) })
		s.feed.Room(after, now, id)
	}
}

// next is another version of a job: of another size, or of other needs.
func (d dice) next(old, other *model.Job) *model.Job {
	j := *old
	j.Version++
	j.Groups = nil
	for _, g := range old.Groups {
		copied := *g
		j.Groups = append(j.Groups, &copied)
	}
	switch d.IntN(4) {
	case 0:
		j.Priority = other.Priority
	case 1:
		if !j.Type.PerNode() {
			j.Groups[0].Count = d.in(0, 5)
		}
	case 2:
		j.Groups[0].Resources = other.Groups[0].Resources
	case 3:
		j.Groups = j.Groups[:1]
		if !j.Type.PerNode() { // their instances are counted by node, not by property
			j.Groups[0].Constraints = other.Groups[0].Constraints
		}
	}
	return &j
}

// Whatever happens to a small cluster: no node is ever over capacity, nobody is
// evicted by its equal or in vain, every evaluation comes to an end, who waits
// could not be placed, memory and workers change nothing, and the applier
// accepts what the scheduler built on the same state.
func TestServer_KeepsItsPromisesWhateverHappens(t *testing.T) {
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
			placed, evicted, blocked := 0, 0, 0
			for range soak(5) {
				rapid.Check(t, func(t *rapid.T) {
					d := drawDice(t)
					s := newServer(t, policies, c.minimal)
					s.rich, s.guarded = c.rich, c.guarded
					nodes := []string{"n0", "n1", "n2", "n3"}[:d.in(1, 4)]
					s.do(func(txn *state.Txn) []*model.Evaluation {
						config := coretest.AllPreempt()
						config.Policy = c.name
						config.Algorithm = pick(d, model.Binpack, model.SpreadRank)
						txn.SetConfig(config)
						for _, id := range nodes {
							n := d.node(id)
							if c.guarded && d.oneIn(3) {
								n.Taints = []model.Taint{{Key: "spot", Effect: pick(d, model.NoSchedule, model.PreferNoSchedule)}}
							}
							s.t.Logf("node %+v", *n)
							must(txn.UpsertNode(n))
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
				})
			}
			t.Logf("%d placed, %d evicted, %d waiting", placed, evicted, blocked)
			if placed == 0 || evicted == 0 || blocked == 0 {
				t.Error("the property was not exercised")
			}
		})
	}
}
