package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A group that uses a node's last capacity may evict there for its next instance.
func TestService_EvictsOnNodeItPlacedOn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.run(job("c", 30, 3, 1).Obj(), "c1", "n1")
	w.job(job("e", 60, 4, 4).Count(2).Obj())
	w.want("e", "e.g[0]@n1, e.g[1]@n1 over c1")
}

// reference/nomad.md 1.9, quirk 1: Nomad counts capacity that the preemptor's own
// allocations use twice, proposes one victim instead of four, and is rejected without
// end. Ten of 100 on a node of 1000; two of 400 require eight evictions.
func TestQuirk1_CountsOwnAllocationsOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"default", "nomad"} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, one runs already: %t", name, running), func(t *testing.T) {
				w := newFixture(t)
				w.config(func(c *model.SchedulerConfig) { c.Policy = name })
				w.node("n1", func(n *model.Node) { n.Capacity = model.Resources{"cpu": 1000, "memory": 1000} })
				ten := 10
				if running {
					ten = 6
				}
				var pairs []string
				for i := range ten {
					pairs = append(pairs, fmt.Sprint("a", i), "n1")
				}
				w.run(job("small", 20, 100, 100).Count(10).Obj(), pairs...)
				want := "h.g[0]@n1 over a0 a1 a2 a3, h.g[1]@n1 over a4 a5 a6 a7"
				if running {
					w.run(job("h", 90, 400, 400).Obj(), "own", "n1")
					want = "h.g[1]@n1 over a0 a1 a2 a3, keep own"
				}
				w.job(job("h", 90, 400, 400).Count(2).Obj())
				w.want("h", want) // the fixture requires that the planner accepts every plan
				left := 0
				for a := range w.store.Snapshot().Allocs() {
					if a.Live() && a.Job.ID == "small" {
						left++
					}
				}
				if left != 2 {
					t.Errorf("%d of the small ones are left, want 2", left)
				}
			})
		}
	}
}

// Quirk 4: the victims decide which node is chosen, not the utilization of the node
// before their eviction.
func TestQuirk4_VictimsDecideNode(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for i := range 20 {
		id := fmt.Sprintf("n%02d", i)
		memory := int64(10)
		if i%2 == 1 {
			memory = 100 // free memory lowers its utilization
		}
		w.node(id, func(n *model.Node) { n.Capacity["memory"] = memory })
	}
	var high, low []string
	for i := range 20 {
		for k := range 2 {
			pair := []string{fmt.Sprintf("v%02d-%d", i, k), fmt.Sprintf("n%02d", i)}
			if i%2 == 0 {
				high = append(high, pair...)
			} else {
				low = append(low, pair...)
			}
		}
	}
	w.run(job("p75", 75, 5, 5).Count(20).Obj(), high...)
	w.run(job("p20", 20, 5, 5).Count(20).Obj(), low...)
	w.job(job("h", 90, 10, 10).Count(10).Obj())
	out := w.plan("h")
	if !out.Placed() {
		t.Fatal(format(out))
	}
	victims := 0
	for _, g := range out.Plan.Groups {
		for _, e := range g.Evictions {
			victims++
			if a := w.store.Snapshot().Alloc(e.AllocID); a.Job.Priority != 20 {
				t.Errorf("%s of priority %d is evicted", a.ID, a.Job.Priority)
			}
		}
	}
	if victims != 20 {
		t.Errorf("%d victims", victims)
	}
}

func TestPreemption_Allowed(t *testing.T) {
	t.Parallel()
	delta := func(d int32) func(*fixture, *model.Job) {
		return func(w *fixture, _ *model.Job) { w.config(func(c *model.SchedulerConfig) { c.PriorityDelta = &d }) }
	}
	for _, c := range []struct {
		name   string
		gap    int32
		change func(w *fixture, j *model.Job)
		want   bool
	}{
		{"a gap of ten", 10, nil, true},
		{"a gap of nine", 9, nil, false},
		{"the operator's delta", 5, delta(5), true},
		{"below the operator's delta", 4, delta(5), false},
		{"a delta of zero does not allow equals", 0, delta(0), false},
		{"a delta of zero allows one", 1, delta(0), true},
		{"a larger delta", 19, delta(20), false},
		{"preemptionPolicy Never", 50, func(_ *fixture, j *model.Job) { j.NeverPreempts = true }, false},
		{"another type is switched off", 50, func(w *fixture, _ *model.Job) {
			w.config(func(c *model.SchedulerConfig) { c.Preemption[model.JobBatch] = false })
		}, true},
	} {
		for kind := range model.JobType(model.JobTypes) {
			t.Run(c.name+" "+kind.String(), func(t *testing.T) {
				w := newFixture(t)
				w.node("n1")
				w.run(job("low", 10, 10, 10).Obj(), "l", "n1")
				j := job("j", 10+c.gap, 10, 10).Type(kind).Obj()
				if c.change != nil {
					c.change(w, j)
				}
				want := c.want
				if strings.HasPrefix(c.name, "another") {
					want = kind != model.JobBatch
				}
				w.job(j)
				if got := strings.Contains(w.eval("j"), "over l"); got != want {
					t.Errorf("evicts: %t, want %t", got, want)
				}
			})
		}
	}
}

func TestPreemption_SkipsNonPreemptible(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.run(job("low", 10, 10, 10).Change(func(j *model.Job) { j.NonPreemptible = true }).Obj(), "l", "n1")
	w.job(job("j", 90, 1, 1).Obj())
	w.want("j", "g waits for 1")
}

// During an update a job has instances of two versions. If one version is evicted
// all-or-none, its instances are evicted together, and the others one by one.
func TestPreemption_CohortFollowsRunningVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		first bool // the earlier version is all-or-none, else the later one
		count int
		on    string // the only feasible node; "": all are
		want  string
	}{
		{"one by one", true, 3, "", "a.g[0]@n1 over f1, a.g[1]@n2 over f2, a.g[2]@n3 over f0"},
		{"the last of the earlier ones", true, 1, "n3", "a.g[0]@n3 over f0"},
		{"one of the earlier ones, then the others together", false, 2, "", "a.g[0]@n3 over f0, a.g[1]@n1 over f1 f2"},
		{"the others together", false, 1, "n2", "a.g[0]@n2 over f1 f2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t)
			for _, id := range []string{"n1", "n2", "n3"} {
				w.node(id)
			}
			version := func(allOrNone bool) *model.Job {
				return job("f", 10, 6, 1).Count(3).Change(func(j *model.Job) { j.AllOrNone = allOrNone }).Obj()
			}
			w.run(version(c.first), "f0", "n3")
			later := version(!c.first)
			w.job(later)
			w.write(func(txn *state.Txn) {
				txn.AllocWriter().Upsert(coretest.Running("f1", later, 0, 1, "n1"), coretest.Running("f2", later, 0, 2, "n2"))
			})
			w.job(job("a", 50, 6, 1).Count(c.count).With(func(g *model.Group) {
				if c.on != "" {
					g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: model.OpEqual, Value: c.on}}
				}
			}).Obj())
			w.want("a", c.want)
		})
	}
}

// A node that needs no eviction wins, even with the worst score.
func TestPreemption_FreeCapacityWins(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2", func(n *model.Node) { n.Capacity = model.Resources{"cpu": 1000, "memory": 1000} })
	w.run(job("low", 1, 10, 10).Obj(), "l", "n1")
	w.job(job("j", 90, 1, 1).With(func(g *model.Group) {
		g.Affinities = []model.Affinity{{Constraint: model.Constraint{Attribute: "node.id", Operator: "=", Value: "n1"}, Weight: 100}}
	}).Obj())
	w.want("j", "j.g[0]@n2")
}

// The explanation states the actual obstacle: priorities do not matter if the host uses
// the port.
func TestExplanation_EvictionObstacles(t *testing.T) {
	t.Parallel()
	port := func(g *model.Group) { g.Ports = []uint16{80} }
	never := func(j *model.Job) { j.NeverPreempts = true }
	stays := func(j *model.Job) { j.NonPreemptible = true }
	cache := func(g *model.Group) { g.Labels = labels("cache") }
	colocated := func(g *model.Group) { g.Colocate = term("cache", "node") }
	for _, c := range []struct {
		name   string
		setUp  func(w *fixture)
		job    *model.Job
		reason string
	}{
		{
			"an empty node is too small", nil, job("j", 90, 11, 1).Obj(),
			"1 lacks cpu; eviction does not help: on 1 nothing runs that could be evicted",
		},
		{
			"the gap is too small", func(w *fixture) { w.run(job("low", 41, 10, 1).Obj(), "l", "n1") }, job("j", 50, 4, 1).Obj(),
			"1 lacks cpu; eviction does not help: on 1 nothing has a priority of 40 or less",
		},
		{
			"not preemptible", func(w *fixture) { w.run(job("low", 10, 10, 1).Change(stays).Obj(), "l", "n1") }, job("j", 50, 4, 1).Obj(),
			"1 lacks cpu; eviction does not help: on 1 everything with a priority of 40 or less is not preemptible",
		},
		{
			"a port of something that stays", func(w *fixture) { w.run(job("low", 10, 1, 1).With(port).Change(stays).Obj(), "l", "n1") },
			job("j", 50, 1, 1).With(port).Obj(),
			"1 lacks port 80; eviction does not help: on 1 everything with a priority of 40 or less is not preemptible",
		},
		{
			"co-located with all candidates", func(w *fixture) { w.run(job("low", 10, 10, 1).With(cache).Obj(), "l", "n1") },
			job("j", 50, 4, 1).With(colocated).Obj(),
			"1 lacks cpu; eviction does not help: on 1 the group must be co-located with all candidates",
		},
		{
			"not enough", func(w *fixture) {
				w.run(job("low", 10, 2, 1).Obj(), "l", "n1")
				w.run(job("high", 90, 8, 1).Obj(), "h", "n1")
			}, job("j", 50, 4, 1).Obj(),
			"1 lacks cpu; eviction does not help: on 1 too little would be free after all possible evictions",
		},
		{
			"never", func(w *fixture) { w.run(job("low", 10, 10, 1).Obj(), "l", "n1") }, job("j", 50, 4, 1).Change(never).Obj(),
			"1 lacks cpu; no preemption: the job's preemptionPolicy is Never",
		},
		{
			"switched off", func(w *fixture) {
				w.config(func(c *model.SchedulerConfig) { c.Preemption[model.JobBatch] = false })
				w.run(job("low", 10, 10, 1).Obj(), "l", "n1")
			}, job("j", 50, 4, 1).Type(model.JobBatch).Obj(),
			"1 lacks cpu; no preemption: preemption is off for batch jobs",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t)
			w.node("n1")
			if c.setUp != nil {
				c.setUp(w)
			}
			w.job(c.job)
			for range 2 { // the second one comes from the cache
				if got := w.plan("j").Failed["g"].String(); got != "0 of 1 node: "+c.reason {
					t.Errorf("%q, want %q", got, c.reason)
				}
			}
		})
	}
}

// Every unplaced group is explained node by node and dimension by dimension.
func TestExplanation_NodeByNode(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", zone("a"))
	w.node("n2", zone("b"))
	w.node("n3", zone("a"), func(n *model.Node) { n.Status = model.NodeDown })
	w.node("n4", zone("a"), func(n *model.Node) { n.Drain = true })
	w.node("n5", zone("a"), func(n *model.Node) { n.Ineligible = true })
	w.node("n6", zone("a"))
	w.node("n7", zone("a"), func(n *model.Node) { n.Ports = []uint16{80} })
	w.run(job("low", 10, 5, 1).Obj(), "l1", "n1")
	w.run(job("high", 90, 5, 9).Obj(), "h1", "n1", "h6", "n6")
	w.job(job("j", 50, 4, 6).Count(3).With(func(g *model.Group) {
		g.Ports = []uint16{80}
		g.Constraints = []model.Constraint{{Attribute: "zone", Operator: "=", Value: "a"}}
	}).Obj())
	out := w.plan("j")
	why := out.Failed["g"]
	want := "0 of 7 nodes: 1 lacks cpu, 1 lacks memory, 1 lacks port 80, which the host itself uses, 1 is down, " +
		"1 is draining, 1 is ineligible, 1 excluded by zone = a; eviction does not help: " +
		"on 1 nothing has a priority of 40 or less, on 1 too little would be free after all possible evictions"
	if why.String() != want {
		t.Errorf("%q\nwant\n%q", why, want)
	}
	samples := ""
	for _, s := range why.Samples {
		samples += s.NodeID + ": " + s.Reason + "\n"
	}
	want = `n1: cpu; too little would be free after all possible evictions
n2: zone = a
n3: node is down
n4: node is draining
n5: node is ineligible
`
	if samples != want {
		t.Errorf("%s\nwant\n%s", samples, want)
	}
	if why.Waiting != 2 || out.Queued["g"] != 3 {
		t.Errorf("%d waiting after the first of %d", why.Waiting, out.Queued["g"])
	}
	w.config(func(c *model.SchedulerConfig) { c.Preemption[model.JobService] = false })
	if got := w.plan("j").Failed["g"].String(); strings.Contains(got, "eviction") {
		t.Errorf("without preemption: %q", got)
	}
}

func TestExplanation_WithoutNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.job(job("j", 50, 1, 1).Obj())
	if got := w.plan("j").Failed["g"].String(); got != "there are no nodes" {
		t.Error(got)
	}
}

// bad is a policy that fails when it is called for victims.
type bad struct{}

func (bad) Info() sdk.Info { return sdk.Info{Name: "bad", Delta: 1} }
func (bad) ScoreVictims(*sdk.Candidates, *sdk.VictimScores) error {
	return errors.New("cannot decide")
}

// On a fault the evaluation evicts nothing, places instances that need no eviction, and
// reports the fault of the policy.
func TestFault_EvictsNothingAndReportsFault(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func() sdk.Policy { return bad{} })
	w.node("n1")
	w.node("n2")
	w.run(job("low", 10, 10, 10).Obj(), "l", "n1")
	w.job(job("j", 90, 6, 6).Count(2).Change(func(j *model.Job) { j.Policy = "bad" }).Obj())
	out := w.plan("j")
	if got := format(out); got != "j.g[0]@n2, g waits for 1" {
		t.Error(got)
	}
	var fault *policy.Error
	if !errors.As(out.Fault, &fault) || fault.Policy != "bad" || fault.Hook != "ScoreVictims" || !strings.Contains(out.Fault.Error(), "cannot decide") {
		t.Errorf("fault %v", out.Fault)
	}
	// A job under another policy is not affected.
	w.job(job("k", 90, 6, 6).Count(2).Obj())
	w.want("k", "k.g[0]@n2, k.g[1]@n1 over l")
}

// flaky fails while its flag is set.
type flaky struct{ fails *bool }

func (flaky) Info() sdk.Info { return sdk.Info{Name: "flaky", Delta: 1} }
func (f flaky) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	if *f.fails {
		return errors.New("cannot decide")
	}
	return nil
}

// flakyFixture has one full node and a job that needs an eviction under flaky.
func flakyFixture(t *testing.T, onFault policy.OnFault) (w *fixture, v *policy.Version, fails *bool) {
	t.Helper()
	fails = new(bool)
	v, err := policy.NewVersion(policy.Source{
		Name: "flaky", OnFault: onFault,
		Module: policy.Native("test", func() sdk.Policy { return flaky{fails} }),
	})
	must(err)
	set, err := policy.NewSet(coretest.Version(func() sdk.Policy { return rules.New() }), v)
	must(err)
	w = newFixture(t)
	w.sched = scheduler.New(scheduler.Config{Policies: set, Forget: true})
	w.node("n1")
	w.run(job("low", 10, 10, 10).Obj(), "l", "n1")
	w.job(job("j", 90, 6, 6).Change(func(j *model.Job) { j.Policy = "flaky" }).Obj())
	return w, v, fails
}

func TestFault_FallsBackToDefaultIfConfigured(t *testing.T) {
	t.Parallel()
	w, v, fails := flakyFixture(t, policy.FallBack)
	*fails = true
	out := w.plan("j")
	if got := format(out); got != "j.g[0]@n1 over l" {
		t.Error(got)
	}
	if out.Fault == nil || v.Fallbacks() != 1 {
		t.Errorf("fault %v, %d fallbacks", out.Fault, v.Fallbacks())
	}
}

func TestFault_BreakerOpensAfterRepeatedFaults(t *testing.T) {
	t.Parallel()
	w, v, fails := flakyFixture(t, policy.Deny)
	*fails = true
	for range 5 {
		w.plan("j")
	}
	asked, _ := v.Stats()
	*fails = false
	out := w.plan("j")
	if calls, _ := v.Stats(); calls != asked {
		t.Error("the policy was called although its breaker is open")
	}
	if got := format(out); got != "g waits for 1" || out.Fault == nil {
		t.Errorf("%s, fault %v", got, out.Fault)
	}
	w.now += int64(30 * time.Second)
	if got := format(w.plan("j")); got != "j.g[0]@n1 over l" {
		t.Errorf("after the pause: %s", got)
	}
	*fails = true
	w.plan("j")
	*fails = false
	if got := format(w.plan("j")); got != "j.g[0]@n1 over l" {
		t.Errorf("one fault after a success: %s", got)
	}
}

func TestPolicy_MissingVersionIsError(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.job(job("j", 90, 6, 6).Change(func(j *model.Job) { j.Policy = "missing" }).Obj())
	_, err := w.sched.Process(&model.Evaluation{Namespace: "default", JobID: "j"}, w.store.Snapshot(), 0)
	if err == nil || !strings.Contains(err.Error(), `"missing"`) || !strings.Contains(err.Error(), "default, nomad") {
		t.Error(err)
	}
}

// later requests another call at a later time.
type later struct{}

func (later) Info() sdk.Info { return sdk.Info{Name: "later", Delta: 1, Columns: sdk.TimeColumns} }
func (later) PriorityDelta(in *sdk.Candidates, gap []int32, r *sdk.Recheck) error {
	for i := range gap {
		if in.Now < 100e9 {
			gap[i] = 1000
		}
	}
	if in.Now < 100e9 {
		r.At(100e9)
	}
	return nil
}

func TestRecheck_ReachesTheOutcome(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func() sdk.Policy { return later{} })
	w.node("n1")
	w.run(job("low", 10, 10, 10).Obj(), "l", "n1")
	for _, kind := range []model.JobType{model.JobService, model.JobSystem} {
		w.now = 0
		w.job(job("j", 90, 6, 6).Type(kind).Change(func(j *model.Job) { j.Policy = "later" }).Obj())
		if out := w.plan("j"); out.RecheckAt != 100e9 || out.Placed() {
			t.Errorf("%s: recheck at %d, %s", kind, out.RecheckAt, format(out))
		}
		w.now = 100e9
		if out := w.plan("j"); out.RecheckAt != 0 || !slices.Contains(out.Plan.Groups[0].Placements[0].Preempted, "l") {
			t.Errorf("%s: recheck at %d, %s", kind, out.RecheckAt, format(out))
		}
	}
}
