package scheduler_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// movable returns a fixture in which one instance of a job may be moved in an hour.
func movable(t testing.TB, policies ...func() sdk.Policy) *fixture {
	w := newFixture(t, policies...)
	w.now = int64(10 * time.Hour)
	w.config(func(c *model.SchedulerConfig) { c.Moves = &model.Rate{Number: 1, Window: time.Hour} })
	return w
}

// scattered is a cluster in which big fits nowhere: a, b and c leave 6, 8 and 8 of 10.
func scattered(t testing.TB, change func(*fixture, *model.Job)) *fixture {
	w := movable(t)
	for _, id := range []string{"n1", "n2", "n3"} {
		w.node(id)
	}
	w.run(job("a", 50, 4, 1).Obj(), "a1", "n1")
	w.run(job("b", 50, 3, 1).Obj(), "b1", "n2")
	c := job("c", 50, 2, 1).With(func(g *model.Group) { g.Labels = labels("c") }).Obj()
	w.run(c, "c1", "n3")
	w.job(job("big", 50, 9, 1).Obj())
	if change != nil {
		next := *c
		next.Groups = nil
		for _, g := range c.Groups {
			group := *g
			group.Ask = model.Ask{}
			next.Groups = append(next.Groups, &group)
		}
		change(w, &next)
		w.job(&next)
		w.write(func(txn *state.Txn) { // c1 is of the newest version
			stored := *txn.Alloc("c1")
			stored.Job = txn.Job(stored.Job.Key())
			stored.Group = stored.Job.Groups[0]
			txn.AllocWriter().Upsert(&stored)
		})
	}
	return w
}

// What protects an instance from being moved has the next cheapest one moved instead.
func TestMoves_RespectProtection(t *testing.T) {
	t.Parallel()
	const cheapest, next = "big.g[0]@n3, c.g[0]#1@n1, stop c1", "b.g[0]#1@n1, big.g[0]@n2, stop b1"
	for _, tt := range []struct {
		name   string
		change func(*fixture, *model.Job)
		want   string
	}{
		{"nothing", nil, cheapest},
		{"moves are off", func(w *fixture, _ *model.Job) { w.config(func(c *model.SchedulerConfig) { c.Moves = nil }) }, "g waits for 1"},
		{"it is not preemptible", func(_ *fixture, j *model.Job) { j.NonPreemptible = true }, next},
		{"its job is evicted all-or-none", func(_ *fixture, j *model.Job) { j.AllOrNone = true }, next},
		{"its priority is higher", func(_ *fixture, j *model.Job) { j.Priority = 51 }, next},
		{"its priority is lower", func(_ *fixture, j *model.Job) { j.Priority = 41 }, cheapest},
		{"it has run for too short a time", func(_ *fixture, j *model.Job) {
			j.Toleration = &model.PreemptionToleration{MinRuntime: int64(11 * time.Hour)}
		}, next},
		{"it is to be apart from others", func(_ *fixture, j *model.Job) { j.Groups[0].Separate = term("x", "zone") }, next},
		{"others are to be apart from it", func(w *fixture, _ *model.Job) {
			w.job(job("d", 50, 1, 1).With(func(g *model.Group) { g.Separate = term("c", "zone") }).Obj())
		}, next},
		{"a budget of best effort", func(w *fixture, _ *model.Job) {
			w.write(func(txn *state.Txn) {
				txn.BudgetWriter().Upsert(&model.Budget{Namespace: "default", Name: "c", Labels: labels("c"), MinAvailable: &model.Bound{Number: 1}})
			})
		}, next},
		{"a budget for evictions in a window", func(w *fixture, _ *model.Job) {
			w.write(func(txn *state.Txn) {
				txn.BudgetWriter().Upsert(&model.Budget{Namespace: "default", Name: "c", Labels: labels("c"), MaxEvictions: &model.Rate{Window: time.Hour}})
			})
		}, next},
		{"its job was moved lately", func(w *fixture, _ *model.Job) {
			w.write(func(txn *state.Txn) {
				a := *txn.Alloc("c1")
				a.MovedFrom, a.CreateTime = "c0", w.now-int64(59*time.Minute)
				txn.AllocWriter().Upsert(&a)
			})
		}, next},
		{"its job was moved long ago", func(w *fixture, _ *model.Job) {
			w.write(func(txn *state.Txn) {
				a := *txn.Alloc("c1")
				a.MovedFrom, a.CreateTime = "c0", w.now-int64(time.Hour)
				txn.AllocWriter().Upsert(&a)
			})
		}, cheapest},
		{"no other node is feasible for it", func(_ *fixture, j *model.Job) {
			j.Groups[0].Constraints = []model.Constraint{{Attribute: "node.id", Operator: model.OpEqual, Value: "n3"}}
		}, next},
		{"the preferred node would expel it later", func(w *fixture, j *model.Job) {
			j.Groups[0].Tolerations = []model.Toleration{{Key: "maintenance", Operator: model.TolerationExists, For: time.Minute}}
			j.Groups[0].Affinities = []model.Affinity{{Constraint: model.Constraint{Attribute: "node.id", Operator: model.OpEqual, Value: "n1"}, Weight: 100}}
			w.change("n1", func(n *model.Node) { n.Taints = []model.Taint{{Key: "maintenance", Effect: model.NoExecute}} })
		}, "big.g[0]@n3, c.g[0]#1@n2, stop c1"},
		{"the other node would expel it later", func(w *fixture, j *model.Job) {
			j.Groups[0].Tolerations = []model.Toleration{{Key: "maintenance", Operator: model.TolerationExists, For: time.Minute}}
			w.change("n1", func(n *model.Node) { n.Taints = []model.Taint{{Key: "maintenance", Effect: model.NoExecute}} })
			w.change("n2", func(n *model.Node) { n.Ineligible = true })
		}, "g waits for 1"},
		{"the other job never preempts", func(w *fixture, _ *model.Job) {
			w.job(job("big", 50, 9, 1).Change(func(j *model.Job) { j.NeverPreempts = true }).Obj())
		}, "g waits for 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scattered(t, tt.change).want("big", tt.want)
		})
	}
}

// An instance of equal priority is moved only for more work than it is, and only if less work
// is lost than is placed; if the moved one ends by itself, 16 times as much must be gained
// until then. Work of lower priority is moved as it would be evicted.
func TestMoves_CostLessThanTheyBring(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		priority int32         // of the instance that is in the way
		cpu      int64         // of it
		ends     time.Duration // of it, from its start
		duration time.Duration // of the new one
		want     string
	}{
		{"less than is placed", 50, 4, 0, 0, "new.g[0]@n1, old.g[0]#1@n2, stop old1"},
		{"as much as is placed", 50, 5, 0, 0, "g waits for 1"},
		{"as much, of lower priority", 49, 5, 0, 0, "new.g[0]@n1, old.g[0]#1@n2, stop old1"},
		{"more work is placed than lost", 50, 4, 0, 9 * time.Hour, "new.g[0]@n1, old.g[0]#1@n2, stop old1"},
		{"as much work is lost as placed", 50, 4, 0, 8 * time.Hour, "g waits for 1"},
		{"it ends late", 50, 4, 139 * time.Hour, 0, "new.g[0]@n1, old.g[0]#1@n2, stop old1"},
		{"it ends by itself before that pays", 50, 4, 138 * time.Hour, 0, "g waits for 1"},
		{"both end late", 50, 4, 139 * time.Hour, 129 * time.Hour, "new.g[0]@n1, old.g[0]#1@n2, stop old1"},
		{"the new one ends before that pays", 50, 4, 139 * time.Hour, 128 * time.Hour, "g waits for 1"},
		{"of lower priority, it ends soon", 49, 4, 11 * time.Hour, time.Hour, "new.g[0]@n1, old.g[0]#1@n2, stop old1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := movable(t)
			w.node("n1")
			w.node("n2")
			w.run(job("old", tt.priority, tt.cpu, 1).With(func(g *model.Group) { g.Duration = int64(tt.ends) }).Obj(), "old1", "n1")
			w.run(job("pin", 50, 2, 1).With(func(g *model.Group) { g.Count = 2 }).Change(func(j *model.Job) { j.NonPreemptible = true }).Obj(), "p1", "n1", "p2", "n2")
			// n2 is for old alone: new does not fit there.
			w.job(job("new", 50, 5, 1).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: model.OpEqual, Value: "n1"}}
				g.Duration = int64(tt.duration)
			}).Obj())
			w.want("new", tt.want)
		})
	}
}

// Work is moved rather than evicted if that loses no more work, the lowest priority first, and
// several instances are moved if one does not suffice.
func TestMoves_ComeBeforeEvictions(t *testing.T) {
	t.Parallel()
	w := movable(t)
	for _, id := range []string{"n1", "n2"} {
		w.node(id)
	}
	w.run(job("low", 10, 6, 1).Obj(), "low1", "n1")
	w.run(job("x", 20, 3, 1).Obj(), "x1", "n2")
	w.run(job("y", 30, 3, 1).Obj(), "y1", "n2")
	// y1 may go to n1, x1 as well, but not both: nothing makes room for 8 without an eviction.
	w.job(job("new", 50, 7, 1).Obj())
	w.want("new", "new.g[0]@n2, stop x1, x.g[0]#1@n1")
	if a := w.store.Snapshot().Alloc("x.g[0]#1"); a.MovedFrom != "x1" || w.store.Snapshot().Alloc("x1").MovedTo != a.ID {
		t.Errorf("moved from %q", a.MovedFrom)
	}
	w.job(job("urgent", 90, 7, 1).Obj())
	w.want("urgent", "urgent.g[0]@n1 over low1")
}

// Moves give way to evictions that lose less work, unless these are of a higher priority or exceed
// a budget. This holds for single instances, gangs, and groups that are bound to a domain.
func TestMoves_GiveWayToCheaperEvictions(t *testing.T) {
	t.Parallel()
	const move, evict = "new.g[0]@n1, old.g[0]#1@n3, stop old1", "new.g[0]@n2 over young1"
	for _, tt := range []struct {
		name     string
		old      time.Duration // age of the instance that may be moved; its size is 8
		young    time.Duration // age of the one that may be evicted only; its size is 9
		priority int32         // of the latter
		limited  bool          // its budget permits no disruption
		want     string
	}{
		{"less work", 9 * time.Hour, 7 * time.Hour, 20, false, evict},
		{"as much work", 9 * time.Hour, 8 * time.Hour, 20, false, move},
		{"no work", 0, 0, 20, false, move},
		{"of a higher priority", 9 * time.Hour, time.Hour, 31, false, move},
		{"beyond a budget", 9 * time.Hour, time.Hour, 20, true, move},
	} {
		for kind, change := range map[string]func(*model.Job){
			"single": func(*model.Job) {},
			"gang":   func(j *model.Job) { j.AllAtOnce = true },
			"bound":  func(j *model.Job) { j.Groups[0].Labels, j.Groups[0].Colocate = labels("me"), term("me", "rack") },
		} {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				w := movable(t, func() sdk.Policy { return &rule{} }) // evicts what loses the least work, of any priority
				w.config(func(c *model.SchedulerConfig) { c.Policy = "rule" })
				for _, id := range []string{"n1", "n2", "n3"} {
					w.node(id, func(n *model.Node) { n.Attributes = map[string]string{"rack": id} })
				}
				w.run(job("old", 30, 8, 1).Obj(), "old1", "n1")
				w.run(job("young", tt.priority, 9, 1).With(func(g *model.Group) { g.Labels = labels("young") }).Obj(), "young1", "n2")
				w.run(job("pin", 90, 2, 1).Change(func(j *model.Job) { j.NonPreemptible = true }).Obj(), "p1", "n3")
				w.write(func(txn *state.Txn) {
					for id, age := range map[string]time.Duration{"old1": tt.old, "young1": tt.young} {
						a := *txn.Alloc(id)
						a.StartTime = w.now - int64(age)
						txn.AllocWriter().Upsert(&a)
					}
					if tt.limited {
						txn.BudgetWriter().Upsert(&model.Budget{
							Namespace: model.DefaultNamespace, Name: "least", Labels: labels("young"), MinAvailable: &model.Bound{Number: 1},
						})
					}
				})
				w.job(job("new", 80, 9, 1).Change(change).Obj())
				w.want("new", tt.want)
			})
		}
	}
}

// Moves take place although the policy that was called to compare evictions with them is at fault. The
// fault is recorded once for an evaluation, so that it opens the circuit breaker and is reported.
func TestMoves_RecordFaultOfPolicy(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]func(*model.Job){
		"single": func(*model.Job) {},
		"gang":   func(j *model.Job) { j.AllAtOnce = true },
		"bound":  func(j *model.Job) { j.Groups[0].Labels, j.Groups[0].Colocate = labels("me"), term("me", "rack") },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := movable(t, func() sdk.Policy { return bad{} })
			w.config(func(c *model.SchedulerConfig) { c.Policy = "bad" })
			for _, id := range []string{"n1", "n2", "n3", "n4"} {
				w.node(id, func(n *model.Node) { n.Attributes = map[string]string{"rack": "r"} })
			}
			w.run(job("old", 30, 6, 1).Obj(), "old1", "n1")
			w.run(job("young", 30, 6, 1).Obj(), "young1", "n2")
			w.run(job("pin", 90, 4, 1).Change(func(j *model.Job) { j.NonPreemptible = true }).Count(2).Obj(), "p1", "n3", "p2", "n4")
			w.job(job("new", 80, 9, 1).Count(2).Change(change).Obj())
			for range 5 { // opens the breaker
				out := w.plan("new")
				if got := format(out); got != "new.g[0]@n1, new.g[1]@n2, old.g[0]#1@n3, stop old1, stop young1, young.g[0]#1@n4" {
					t.Error(got)
				}
				if fault, ok := errors.AsType[*policy.Error](out.Fault); !ok || fault.Policy != "bad" {
					t.Errorf("fault %v", out.Fault)
				}
			}
			if v := w.plan("new").Version; v.Breaker.OpenError(w.now) == nil {
				t.Error("the breaker is closed")
			}
		})
	}
}

// A gang that moves do not complete is placed by evictions alone: what its first instance moves
// would use capacity that the second one needs. The same holds for groups that are bound to a domain.
func TestMoves_DoNotKeepGangWaiting(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]func(*model.Job){
		"gang":  func(j *model.Job) { j.AllAtOnce = true },
		"bound": func(j *model.Job) { j.Groups[0].Labels, j.Groups[0].Colocate = labels("me"), term("me", "rack") },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := movable(t)
			for _, id := range []string{"n1", "n2"} {
				w.node(id, func(n *model.Node) { n.Attributes = map[string]string{"rack": "r"} })
			}
			w.run(job("a", 30, 6, 1).Obj(), "a1", "n1")
			w.run(job("b", 30, 4, 1).Obj(), "b1", "n2")
			w.job(job("new", 80, 7, 1).Count(2).Change(change).Obj())
			w.want("new", "new.g[0]@n1 over a1, new.g[1]@n2 over b1")
		})
	}
}

// A gang is placed after moves, without evictions, and one that fits without moves moves
// nothing.
func TestMoves_GangMovesOnlyIfNecessary(t *testing.T) {
	t.Parallel()
	gang := func(cpu int64) *model.Job {
		return job("gang", 50, cpu, 1).Count(2).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj()
	}
	w := movable(t)
	for _, id := range []string{"n1", "n2", "n3"} {
		w.node(id)
	}
	w.run(job("a", 50, 2, 1).Obj(), "a1", "n1")
	w.run(job("b", 50, 3, 1).Obj(), "b1", "n2")
	w.run(job("c", 50, 4, 1).Obj(), "c1", "n3")
	w.job(gang(7))
	w.want("gang", "gang.g[0]@n2, gang.g[1]@n1")
	w = movable(t)
	for _, id := range []string{"n1", "n2", "n3"} {
		w.node(id)
	}
	w.run(job("a", 50, 2, 1).Obj(), "a1", "n1")
	w.run(job("b", 50, 3, 1).Obj(), "b1", "n2")
	w.run(job("c", 50, 4, 1).Obj(), "c1", "n3")
	w.job(gang(9))
	w.want("gang", "a.g[0]#1@n3, b.g[0]#1@n3, gang.g[0]@n1, gang.g[1]@n2, stop a1, stop b1")
}

// An allocation on a draining node gets the place that a smaller one leaves.
func TestMoves_DrainMakesRoom(t *testing.T) {
	t.Parallel()
	w := movable(t)
	w.node("n1", func(n *model.Node) { n.Drain = true })
	w.node("n2")
	w.node("n3")
	w.run(job("large", 50, 9, 1).Obj(), "large1", "n1")
	w.run(job("small", 50, 2, 1).Obj(), "small1", "n2")
	w.run(job("other", 50, 3, 1).Obj(), "other1", "n3")
	w.want("large", "large.g[0]#1@n2, small.g[0]#1@n3, stop large1, stop small1")
}

// Several workers commit plans with moves that were made on old states, while nodes fail,
// drain and return and instances end: every moved instance continues, both halves of a move
// are committed or neither is, and no limit is exceeded.
func TestMoves_NeverLoseWorkUnderStalePlans(t *testing.T) {
	t.Parallel()
	outer := t
	moves, rejected := 0, 0
	for range 2 { // a hundred by rapid, from another seed each time
		rapid.Check(t, func(t *rapid.T) {
			d := draw(outer, t)
			d.now = int64(time.Hour)
			rate := &model.Rate{Number: rapid.Int32Range(1, 2).Draw(t, "moves"), Window: 3 * time.Minute}
			d.config(func(c *model.SchedulerConfig) { c.Moves = rate })
			for i := range rapid.IntRange(1, 5).Draw(t, "plain") {
				id := fmt.Sprint("p", i)
				d.jobs = append(d.jobs, id)
				d.job(job(id, rapid.SampledFrom([]int32{50, 50, 80}).Draw(t, "priority"), rapid.Int64Range(1, 9).Draw(t, "cpu"), 1).
					Count(rapid.IntRange(1, 3).Draw(t, "count")).Obj())
			}
			applier := d.applier()
			for range rapid.IntRange(6, 20).Draw(t, "steps") {
				d.now += int64(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour}).Draw(t, "pass"))
				d.past = append(d.past, d.store.Snapshot())
				switch rapid.IntRange(0, 9).Draw(t, "upset") {
				case 0, 1:
					d.disturb()
				case 2:
					d.complete()
				}
				d.start()
				d.holdsWhereMade()
				snap := d.past[rapid.IntRange(max(0, len(d.past)-3), len(d.past)-1).Draw(t, "snapshot")]
				plan := d.process(0, rapid.SampledFrom(d.jobs).Draw(t, "job"), snap)
				before := d.store.Snapshot()
				result, err := applier.ApplyOne(plan)
				if err != nil {
					t.Fatal(err)
				}
				after := d.store.Snapshot()
				n, err := checkMoves(before, after, plan, d.now, rate)
				if err == nil {
					err = after.Check()
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, describe(plan))
				}
				moves += n
				for _, r := range result.Rejected {
					for _, a := range plan.Groups[r.Group].Placements {
						if a.MovedFrom != "" {
							rejected++
						}
					}
				}
			}
		})
	}
	t.Logf("%d moves, %d rejected", moves, rejected)
	if moves == 0 || rejected == 0 {
		t.Error("the property was not exercised")
	}
}

// complete ends some live allocation, as a node reports it.
func (d *drawn) complete() {
	for a := range d.store.Snapshot().Allocs() {
		if a.Live() && rapid.Bool().Draw(d.t, "ends") {
			ended := *a
			ended.Client, ended.EndTime = model.ClientComplete, d.now
			d.write(func(txn *state.Txn) { txn.AllocWriter().Upsert(&ended) })
			return
		}
	}
}

// start starts all allocations that wait.
func (d *drawn) start() {
	d.write(func(txn *state.Txn) {
		for a := range d.store.Snapshot().Allocs() {
			if a.Live() && !a.Started {
				next := *a
				next.Client, next.Started, next.StartTime = model.ClientRunning, true, d.now
				txn.AllocWriter().Upsert(&next)
			}
		}
	})
}

// checkMoves returns the number of moves of a plan that were committed, or the first way in
// which one loses work or exceeds a limit.
func checkMoves(before, after *state.Snapshot, plan *model.Plan, now int64, rate *model.Rate) (n int, err error) {
	moved := map[model.JobKey]int32{}
	for a := range after.Allocs() {
		if a.MovedFrom == "" {
			continue
		}
		if rate.Contains(a.CreateTime, now) {
			moved[a.Job.Key()]++
		}
		if before.Alloc(a.ID) != nil {
			continue
		}
		n++
		was, is := before.Alloc(a.MovedFrom), after.Alloc(a.MovedFrom)
		switch {
		case was == nil || !was.Live() || is.Live() || is.Desired != model.DesiredStop:
			return n, fmt.Errorf("%s continues %s, which ran before: %t", a.ID, a.MovedFrom, was != nil && was.Live())
		case is.MovedTo != a.ID || is.NodeID == a.NodeID || a.Group.Name != is.Group.Name || a.Index != is.Index:
			return n, fmt.Errorf("%s moved to %q and not to %s", is.ID, is.MovedTo, a.ID)
		case a.SavedWork < is.RetainedWork(a.Job, is.EndTime) || a.Incarnation <= is.Incarnation:
			return n, fmt.Errorf("%s retains %d of %d ns", a.ID, a.SavedWork, is.RetainedWork(a.Job, is.EndTime))
		case is.Job.Priority > plan.Priority || is.Job.NonPreemptible || is.Job.Type.PerNode() || is.Job.AllOrNone:
			return n, fmt.Errorf("%s may not be moved", is.ID)
		}
	}
	for key, number := range moved {
		if number > rate.Number {
			return n, fmt.Errorf("%d instances of %s were moved", number, key)
		}
	}
	for a := range after.Allocs() {
		if old := before.Alloc(a.ID); a.MovedTo != "" && old.MovedTo == "" && after.Alloc(a.MovedTo) == nil {
			return n, fmt.Errorf("%s was moved to %s, which does not exist", a.ID, a.MovedTo)
		}
	}
	return n, instancesOnce(after)
}

// instancesOnce returns an error if an instance runs twice.
func instancesOnce(snap *state.Snapshot) error {
	seen := map[string]string{}
	for a := range snap.Allocs() {
		if !a.Live() || a.Job.Type.PerNode() {
			continue
		}
		key := fmt.Sprint(a.Job.Key(), a.Group.Name, a.Index)
		if other := seen[key]; other != "" {
			return fmt.Errorf("%s and %s are one instance", a.ID, other)
		}
		seen[key] = a.ID
	}
	return nil
}

// A plan with a move is dropped as a whole if, when it is applied, the moved instance has
// ended or the node that it is to go to is down.
func TestMoves_BothHalvesOrNeither(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		late   bool // also between the verification of the plan and its entry
		change func(*state.Txn)
	}{
		{"the instance has ended", true, func(txn *state.Txn) {
			a := *txn.Alloc("c1")
			a.Client = model.ClientComplete
			txn.AllocWriter().Upsert(&a)
		}},
		{"the target is down", true, func(txn *state.Txn) {
			n := *txn.Node("n1")
			n.Status = model.NodeDown
			must(txn.NodeWriter().Upsert(&n))
		}},
		{"the job was updated", false, func(txn *state.Txn) {
			j := *coretest.Job("c").Priority(50).Ask(1, 1, 0).Obj()
			j.Version = 7
			must(txn.JobWriter().Upsert(&j))
		}},
		{"the vacated node is down", true, func(txn *state.Txn) {
			n := *txn.Node("n3")
			n.Status = model.NodeDown
			must(txn.NodeWriter().Upsert(&n))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := scattered(t, nil)
			plan := w.plan("big").Plan
			w.write(tt.change)
			before := w.store.Snapshot()
			r, err := w.applier().ApplyOne(plan)
			if err != nil || len(r.Committed) != 0 || len(r.Rejected) != 1 {
				t.Fatalf("committed %v, rejected %+v, %v", r.Committed, r.Rejected, err)
			}
			if after := w.store.Snapshot(); after.AllocCount() != before.AllocCount() || after.Alloc("c1").MovedTo != "" {
				t.Error("half of the move was committed")
			}
			if !tt.late {
				return
			}
			// The plan was verified before the change and is applied after it.
			batch := apply.Batch{Now: w.now, Plans: []apply.BatchPlan{{Plan: plan, Groups: []int{0}}}}
			w.write(func(txn *state.Txn) {
				if _, dropped := batch.Apply(txn); len(dropped) != 1 {
					t.Error("the group was not dropped")
				}
			})
			if after := w.store.Snapshot(); after.AllocCount() != before.AllocCount() || after.Alloc("c1").MovedTo != "" {
				t.Error("half of the move was applied")
			}
		})
	}
}

// Later placements of a plan do not evict an instance that the plan moves, even if the search for
// victims began before the move. The first instance evicts low1, the second one
// moves other1 to n2, and the third one would have to evict it there.
func TestMoves_EvictNothingThatThePlanMoves(t *testing.T) {
	t.Parallel()
	w := movable(t)
	w.node("n1", func(n *model.Node) { n.Capacity["cpu"] = 165 })
	w.node("n2", func(n *model.Node) { n.Capacity["cpu"] = 100 })
	w.run(job("low", 10, 90, 1).Obj(), "low1", "n1")
	w.run(job("other", 10, 70, 1).Obj(), "other1", "n1")
	w.run(job("small", 20, 15, 1).Obj(), "small1", "n2")
	w.run(job("fixed", 90, 10, 1).Obj(), "fixed1", "n2")
	w.job(job("asker", 90, 80, 1).Count(3).Obj())
	const want = "asker.g[0]@n1 over low1, asker.g[1]@n1, other.g[0]#1@n2, stop other1, g waits for 1"
	if got := format(w.plan("asker")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// One placement on 5,000 nodes that all lack capacity: off; by one move; and if moves do not
// help, because what is in the way fits nowhere else.
func BenchmarkMoves(b *testing.B) {
	for _, bb := range []struct {
		name  string
		small int64 // cpu of the instance on each node
		rate  *model.Rate
	}{{"off", 2, nil}, {"one", 2, &model.Rate{Number: 10, Window: time.Hour}}, {"none", 6, &model.Rate{Number: 10, Window: time.Hour}}} {
		b.Run(bb.name, func(b *testing.B) {
			const nodes = 5000
			w := newFixture(b)
			w.config(func(c *model.SchedulerConfig) { c.Moves = bb.rate })
			w.write(func(txn *state.Txn) {
				small, large := job("small", 50, bb.small, 1).Count(nodes).Obj(), job("large", 50, 9, 1).Obj()
				must(txn.JobWriter().Upsert(small))
				must(txn.JobWriter().Upsert(large))
				for i := range nodes {
					id := fmt.Sprintf("n%04d", i)
					must(txn.NodeWriter().Upsert(coretest.Node(id, 10, 10, 0)))
					txn.AllocWriter().Upsert(coretest.Running("s"+id, small, 0, i, id))
				}
			})
			snap := w.store.Snapshot()
			eval := &model.Evaluation{ID: "e", Namespace: "default", JobID: "large", Priority: 50}
			b.ReportAllocs()
			for b.Loop() {
				out, err := w.sched.Process(eval, snap, int64(time.Hour))
				if err != nil || out.Placed() != (bb.name == "one") {
					b.Fatalf("placed: %t, %v", out.Placed(), err)
				}
			}
		})
	}
}
