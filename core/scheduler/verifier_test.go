package scheduler_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func labels(app string) map[string]string { return map[string]string{"app": app} }

func term(app, key string) []model.LabelTerm {
	return []model.LabelTerm{{Labels: labels(app), TopologyKey: key}}
}

// Two workers each place on the same snapshot; together they would violate a rule. The
// second plan is rejected with the reason.
func TestVerifier_RejectsPlanThatConflictsWithConcurrentOne(t *testing.T) {
	t.Parallel()
	apart := func(g *model.Group) { g.Labels, g.Separate = labels("x"), term("x", "zone") }
	for _, c := range []struct {
		name   string
		second func(*model.Group)
		reason string
	}{
		{"both want to be apart", apart, "separate from app=x by zone no longer holds"},
		{"only the first does", func(g *model.Group) { g.Labels = labels("x") }, "separate from allocations that exclude it by zone no longer holds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t)
			w.node("n1", zone("a"))
			w.node("n2", zone("a"))
			w.job(job("p", 50, 4, 4).With(apart).Obj())
			w.job(job("q", 50, 4, 4).With(c.second).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: "=", Value: "n2"}}
			}).Obj())
			first, second := w.plan("p").Plan, w.plan("q").Plan
			applier := w.applier()
			if r, err := applier.ApplyOne(first); err != nil || !r.FullyCommitted() {
				t.Fatalf("%+v, %v", r, err)
			}
			r, err := applier.ApplyOne(second)
			if err != nil || len(r.Rejected) != 1 || r.Rejected[0].Reason != c.reason {
				t.Errorf("%+v, %v; want %q", r, err, c.reason)
			}
		})
	}
}

// A replacement does not change counts: the old allocation is removed first.
func TestVerifier_AllowsReplacementOfCountedAllocation(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", zone("a"), func(n *model.Node) { n.Drain = true })
	w.node("n2", zone("a"))
	w.run(job("j", 50, 1, 1).With(func(g *model.Group) {
		g.Constraints = []model.Constraint{{Operator: model.OpDistinctProperty, Attribute: "zone"}}
	}).Obj(), "j1", "n1")
	w.want("j", "j.g[0]#1@n2, stop j1")
}

func (w *fixture) applier() *planner.Applier {
	return planner.NewApplier(planner.Config{
		Store: w.store, Committer: planner.DirectCommitter{Store: w.store}, PlacementVerifier: &feasible.Verifier{},
	})
}

// drawn is a small random cluster of jobs with rules.
type drawn struct {
	*fixture
	t       *rapid.T
	workers []*scheduler.Scheduler
	past    []*state.Snapshot
	jobs    []string
	evals   int
}

func draw(outer testing.TB, t *rapid.T) *drawn {
	d := &drawn{fixture: newFixture(outer), t: t}
	for range 3 {
		d.workers = append(d.workers, scheduler.New(scheduler.Config{Policies: coretest.Policies()}))
	}
	for i := range rapid.IntRange(3, 6).Draw(t, "nodes") {
		d.node(fmt.Sprint("n", i), func(n *model.Node) {
			n.Attributes = map[string]string{}
			for _, key := range []string{"zone", "rack"} {
				if v := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, key); v != "" {
					n.Attributes[key] = v
				}
			}
		})
	}
	for i := range rapid.IntRange(2, 6).Draw(t, "jobs") {
		id := fmt.Sprint("j", i)
		d.jobs = append(d.jobs, id)
		d.job(d.drawJob(id))
	}
	return d
}

func (d *drawn) drawJob(id string) *model.Job {
	t := d.t
	b := coretest.Job(id).Priority(rapid.SampledFrom([]int32{20, 50, 80}).Draw(t, "priority")).
		Type(rapid.SampledFrom([]model.JobType{model.JobService, model.JobService, model.JobBatch, model.JobSystem}).Draw(t, "type"))
	b.Change(func(j *model.Job) { j.AllAtOnce = rapid.IntRange(0, 9).Draw(t, "gang") == 0 })
	for i := range rapid.IntRange(1, 2).Draw(t, "groups") {
		if i > 0 {
			b.Group("h", 1)
		}
		b.Count(rapid.IntRange(1, 3).Draw(t, "count")).Ask(rapid.Int64Range(1, 4).Draw(t, "cpu"), 1, 0).With(d.drawRules)
	}
	return b.Obj()
}

func (d *drawn) drawRules(g *model.Group) {
	t := d.t
	app := rapid.SampledFrom([]string{"x", "y"})
	key := rapid.SampledFrom([]string{"node", "zone", "rack"})
	rare := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }
	if !rare("bare") {
		g.Labels = labels(app.Draw(t, "label"))
	}
	if rare("colocate") {
		g.Colocate = term(app.Draw(t, "colocate"), key.Draw(t, "within"))
	}
	if rare("separate") {
		g.Separate = term(app.Draw(t, "apart"), key.Draw(t, "within"))
	}
	if rare("hosts") {
		g.Constraints = append(g.Constraints, model.Constraint{Operator: model.OpDistinctHosts})
	}
	if rare("property") {
		g.Constraints = append(g.Constraints, model.Constraint{
			Operator: model.OpDistinctProperty, Attribute: "rack", Value: rapid.SampledFrom([]string{"", "2"}).Draw(t, "limit"),
		})
	}
	if rare("skew") {
		g.Spread = []model.Spread{{Attribute: "zone", Weight: 50, MaxSkew: rapid.IntRange(1, 2).Draw(t, "skew")}}
	}
}

// disturb makes allocations move: a node fails, drains or returns, or a job grows.
func (d *drawn) disturb() {
	t := d.t
	if rapid.IntRange(0, 4).Draw(t, "grow") == 0 {
		old := d.store.Snapshot().Job(model.JobKey{Namespace: "default", ID: rapid.SampledFrom(d.jobs).Draw(t, "job")})
		next := *old
		next.Groups = nil
		for _, g := range old.Groups {
			group := *g
			group.Ask, group.Count = model.Ask{}, rapid.IntRange(0, 4).Draw(t, "count")
			next.Groups = append(next.Groups, &group)
		}
		d.job(&next)
		return
	}
	snap := d.store.Snapshot()
	n := *snap.NodeAt(int32(rapid.IntRange(0, snap.NodeCount()-1).Draw(t, "node")))
	n.Drain = rapid.Bool().Draw(t, "drain")
	n.Status = rapid.SampledFrom([]model.NodeStatus{model.NodeReady, model.NodeReady, model.NodeDown}).Draw(t, "status")
	d.write(func(txn *state.Txn) { must(txn.NodeWriter().Upsert(&n)) })
}

// process plans a job on a snapshot, as a worker does.
func (d *drawn) process(worker int, id string, snap *state.Snapshot) *model.Plan {
	d.evals++
	e := &model.Evaluation{ID: fmt.Sprint("e", d.evals), Namespace: "default", JobID: id}
	if j := snap.Job(e.JobKey()); j != nil {
		e.Type, e.Priority = j.Type, j.Priority
	}
	out, err := d.workers[worker].Process(e, snap, d.now)
	if err != nil {
		d.t.Fatal(err)
	}
	return out.Plan
}

// Several workers commit plans made on old states: no rule is ever violated. A plan made
// on the newest state is committed in full.
func TestVerifier_RulesHoldUnderStalePlans(t *testing.T) {
	t.Parallel()
	outer := t
	var accepted, refused uint64
	for range soak.Count(2, 50) { // a hundred by rapid, from another seed each time
		rapid.Check(t, func(t *rapid.T) {
			d := draw(outer, t)
			applier := d.applier()
			for range rapid.IntRange(4, 14).Draw(t, "steps") {
				d.past = append(d.past, d.store.Snapshot())
				if rapid.IntRange(0, 4).Draw(t, "upset") == 0 {
					d.disturb()
				}
				d.holdsWhereMade()
				snap := d.past[rapid.IntRange(max(0, len(d.past)-5), len(d.past)-1).Draw(t, "snapshot")]
				worker := rapid.IntRange(0, len(d.workers)-1).Draw(t, "worker")
				plan := d.process(worker, rapid.SampledFrom(d.jobs).Draw(t, "job"), snap)
				before := d.store.Snapshot()
				if _, err := applier.ApplyOne(plan); err != nil {
					t.Fatal(err)
				}
				if err := rulesHold(before, d.store.Snapshot()); err != nil {
					t.Fatalf("%v\n%s", err, describe(plan))
				}
			}
			stats := applier.Stats()
			accepted, refused = accepted+stats.Groups, refused+stats.Rejected[planner.CauseRules]
		})
	}
	t.Logf("%d groups committed, %d rejected for their rules", accepted, refused)
	if accepted == 0 || refused == 0 {
		t.Error("the property was not exercised")
	}
}

// holdsWhereMade plans some job on the newest state and requires every group to hold.
func (d *drawn) holdsWhereMade() {
	snap := d.store.Snapshot()
	plan := d.process(0, rapid.SampledFrom(d.jobs).Draw(d.t, "job"), snap)
	var scratch planner.Scratch
	v, err := planner.Verify(snap, plan, d.now, &feasible.Verifier{}, &scratch)
	if err != nil || len(v.Rejected) > 0 {
		d.t.Fatalf("the applier rejects a plan of the same state: %+v, %v\n%s", v.Rejected, err, describe(plan))
	}
}

func describe(p *model.Plan) string {
	text := ""
	for i, g := range p.Groups {
		text += fmt.Sprintf("group %d:", i)
		for _, s := range g.Stops {
			text += " stop " + s.AllocID
		}
		for _, a := range g.Placements {
			text += " " + a.ID + "@" + a.NodeID
		}
		text += fmt.Sprintln(" evict", g.Evictions)
	}
	return text
}

// rulesHold returns the rule that a plan violates: placements must be valid among all
// current allocations. It shares no code with the scheduler.
func rulesHold(before, after *state.Snapshot) error {
	var live []*model.Allocation
	for a := range after.Allocs() {
		if a.Live() {
			live = append(live, a)
		}
	}
	for _, a := range live {
		if before.Alloc(a.ID) != nil {
			continue
		}
		w := &placementCheck{before: before, after: after, live: live, alloc: a, node: after.Node(a.NodeID)}
		for _, rule := range []func() error{w.apart, w.colocated, w.distinct, w.skew} {
			if err := rule(); err != nil {
				return fmt.Errorf("%s on %s: %w", a.ID, a.NodeID, err)
			}
		}
	}
	return nil
}

// placementCheck checks one placement.
type placementCheck struct {
	before, after *state.Snapshot
	live          []*model.Allocation
	alloc         *model.Allocation
	node          *model.Node
}

func (w *placementCheck) apart() error {
	for _, b := range w.live {
		for _, pair := range [][2]*model.Allocation{{w.alloc, b}, {b, w.alloc}} {
			for i := range pair[0].Group.Separate {
				t := &pair[0].Group.Separate[i]
				if b.ID != w.alloc.ID && matches(t, pair[1]) && w.shares(t.TopologyKey, b) {
					return fmt.Errorf("not separated from %s on %s by %s", b.ID, b.NodeID, t.TopologyKey)
				}
			}
		}
	}
	return nil
}

func (w *placementCheck) colocated() error {
	for i := range w.alloc.Group.Colocate {
		t := &w.alloc.Group.Colocate[i]
		found, waived := false, matches(t, w.alloc)
		for _, b := range slices.Concat(w.live, slices.Collect(w.before.Allocs())) {
			if b.ID == w.alloc.ID || !b.Live() || !matches(t, b) || w.after.Node(b.NodeID) == nil {
				continue
			}
			found = found || w.shares(t.TopologyKey, b)
			was, is := w.before.Alloc(b.ID), w.after.Alloc(b.ID)
			stayed := was != nil && was.Live() && is != nil && is.Live()
			waived = waived && !stayed // the first of a group may be placed on any node
		}
		if _, ok := w.node.Domain(t.TopologyKey); !ok || !found && !waived {
			return fmt.Errorf("not co-located with %v by %s", t.Labels, t.TopologyKey)
		}
	}
	return nil
}

func (w *placementCheck) distinct() error {
	for i := range w.alloc.Group.Constraints {
		c := &w.alloc.Group.Constraints[i]
		key, limit := "node", 1
		if c.Operator == model.OpDistinctProperty {
			key = c.Attribute
			if n, err := strconv.Atoi(c.Value); err == nil {
				limit = n
			}
		}
		same := 0
		for _, b := range w.live {
			if sameGroup(w.alloc, b) && w.shares(key, b) {
				same++
			}
		}
		if same == 0 || same > limit {
			return fmt.Errorf("%d share its %s, at most %d may", same, key, limit)
		}
	}
	return nil
}

// skew checks only if no member of the group was removed, which may change it arbitrarily.
func (w *placementCheck) skew() error {
	for b := range w.before.Allocs() {
		if b.Live() && sameGroup(w.alloc, b) && !w.after.Alloc(b.ID).Live() {
			return nil
		}
	}
	for _, s := range w.alloc.Group.Spread {
		counts := map[string]int{}
		for n := range w.after.Nodes() {
			if v, ok := n.Attribute(s.Attribute); ok && n.IsEligible() {
				counts[v] += 0
			}
		}
		for _, b := range w.live {
			if n := w.after.Node(b.NodeID); n != nil && sameGroup(w.alloc, b) {
				if v, ok := n.Attribute(s.Attribute); ok {
					if _, counted := counts[v]; counted {
						counts[v]++
					}
				}
			}
		}
		own, _ := w.node.Attribute(s.Attribute)
		for v, n := range counts {
			if counts[own]-n > s.MaxSkew {
				return fmt.Errorf("%d in %s and %d in %s, skew at most %d", counts[own], own, n, v, s.MaxSkew)
			}
		}
	}
	return nil
}

// shares reports whether another allocation is in the same domain.
func (w *placementCheck) shares(key string, b *model.Allocation) bool {
	other := w.after.Node(b.NodeID)
	if other == nil {
		return false
	}
	domain, ok := w.node.Domain(key)
	otherDomain, otherOK := other.Domain(key)
	return ok && otherOK && domain == otherDomain
}

func matches(t *model.LabelTerm, a *model.Allocation) bool {
	for k, v := range t.Labels {
		if a.Group.Labels[k] != v {
			return false
		}
	}
	return true
}

func sameGroup(a, b *model.Allocation) bool {
	return a.Job.Key() == b.Job.Key() && a.Group.Name == b.Group.Name
}
