package planner_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
)

// movingCluster has three nodes of 1000 cpu: small runs on n0, and n2 is free for it.
func movingCluster(t *testing.T) *cluster {
	c := newCluster(t, 3,
		coretest.Job("small").Priority(50).Ask(300, 100, 0).Count(1).With(labelled("small")).Obj(),
		coretest.Job("large").Priority(50).Ask(900, 100, 0).Count(2).Obj(),
		coretest.Job("other").Priority(50).Ask(900, 100, 0).Count(2).Obj())
	c.write(func(txn *state.Txn) {
		config := *coretest.AllPreempt()
		config.Moves = &model.Rate{Number: 1, Window: time.Hour}
		txn.ConfigWriter().Set(&config)
	})
	c.run("s0", "small", 0, "n0")
	return c
}

// moving returns a plan that places an instance of a job on n0 and moves s0 to a node.
func (c *cluster) moving(id, job, to string) *model.Plan {
	plan := c.place(id, job, 0, "n0")
	small := c.store.Snapshot().Job(key("small"))
	g := &plan.Groups[0]
	g.Divisible = false
	g.Stops = []model.Stop{{AllocID: "s0", Reason: "moved", MovedTo: "s1-" + id}}
	g.Placements = append(g.Placements, &model.Allocation{
		ID: "s1-" + id, Job: small, Group: small.Groups[0], NodeID: to, Incarnation: 1, MovedFrom: "s0",
	})
	return plan
}

// Two plans of different jobs move one instance: only the first takes effect, and the instance
// runs once.
func TestApplier_InstanceMovesOnce(t *testing.T) {
	t.Parallel()
	c := movingCluster(t)
	plans := []*model.Plan{c.moving("l0", "large", "n1"), c.moving("o0", "other", "n2")}
	applier, stop := c.start(c)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	committed := 0
	for _, plan := range plans {
		wg.Go(func() {
			result, err := applier.Queue().Submit(t.Context(), plan)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if result.FullyCommitted() {
				committed++
			} else if reason := result.Rejected[0].Reason; !strings.Contains(reason, `allocation "s0" may not be moved: it has ended`) {
				t.Error(reason)
			}
		})
	}
	wg.Wait()
	live := 0
	for _, a := range c.store.Snapshot().AppendJobAllocs(nil, key("small")) {
		if a.Live() {
			live++
		}
	}
	if committed != 1 || live != 1 {
		t.Errorf("%d plans were committed, and the instance runs %d times", committed, live)
	}
}

// changeSmall changes the group of small, in its instance s0 and in the plan that moves it.
func (c *cluster) changeSmall(t *testing.T, p *model.Plan, change func(*model.Group)) {
	t.Helper()
	small := *c.store.Snapshot().Job(key("small"))
	group := *small.Groups[0]
	change(&group)
	small.Groups = []*model.Group{&group}
	c.write(func(txn *state.Txn) {
		if err := txn.JobWriter().Upsert(&small); err != nil {
			t.Fatal(err)
		}
		a := *txn.Alloc("s0")
		a.Job = txn.Job(key("small"))
		a.Group = a.Job.Groups[0]
		txn.AllocWriter().Upsert(&a)
	})
	moved := p.Groups[0].Placements[1]
	moved.Job = c.store.Snapshot().Job(key("small"))
	moved.Group = moved.Job.Groups[0]
}

// Moves are rejected as a whole for reasons of either half.
func TestVerify_RejectsMoves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*cluster, *model.Plan)
		reason string // "": accepted
	}{
		{"nothing", nil, ""},
		{"moves are off", func(c *cluster, _ *model.Plan) {
			c.write(func(txn *state.Txn) { txn.ConfigWriter().Set(coretest.AllPreempt()) })
		}, "moves are off"},
		{"the limit is reached", func(c *cluster, _ *model.Plan) {
			c.write(func(txn *state.Txn) {
				a := *txn.Alloc("s0")
				a.MovedFrom, a.CreateTime = "before", 1
				txn.AllocWriter().Upsert(&a)
			})
		}, "its job allows 1 move in 1h0m0s"},
		{"a budget of best effort", func(c *cluster, _ *model.Plan) {
			c.write(func(txn *state.Txn) {
				b := strict("small", 1)
				b.Strict = false
				txn.BudgetWriter().Upsert(b)
			})
		}, `the disruption budget "default/small" allows no disruption`},
		{"the target has a taint that is tolerated for some time", func(c *cluster, p *model.Plan) {
			c.changeSmall(t, p, func(g *model.Group) {
				g.Tolerations = []model.Toleration{{Key: "maintenance", Operator: model.TolerationExists, For: time.Minute}}
			})
			c.write(func(txn *state.Txn) {
				n := *txn.Node("n2")
				n.Taints = []model.Taint{{Key: "maintenance", Effect: model.NoExecute}}
				if err := txn.NodeWriter().Upsert(&n); err != nil {
					t.Fatal(err)
				}
			})
		}, "a NoExecute taint of the node"},
		{"the target is full", func(c *cluster, _ *model.Plan) { c.run("o1", "other", 1, "n2") }, "the node lacks cpu"},
		{"the instance runs twice", func(c *cluster, _ *model.Plan) { c.run("s9", "small", 0, "n1") }, `allocation "s9" is the same instance`},
		{"the instance runs twice since a node is connected again", func(c *cluster, p *model.Plan) {
			c.changeSmall(t, p, func(g *model.Group) { g.Disconnect = &model.Disconnect{Replace: true} })
			c.write(func(txn *state.Txn) {
				second := *txn.Alloc("s0")
				second.ID, second.NodeID = "s9", "n1"
				txn.AllocWriter().Upsert(&second)
			})
		}, "its instance runs twice"},
		{"the instance replaces one on a disconnected node", func(c *cluster, p *model.Plan) {
			c.changeSmall(t, p, func(g *model.Group) { g.Disconnect = &model.Disconnect{Replace: true} })
			c.write(func(txn *state.Txn) {
				original := *txn.Alloc("s0")
				original.ID, original.NodeID, original.Started = "s9", "n1", true
				txn.AllocWriter().Upsert(&original)
				n := *txn.Node("n1")
				n.Status, n.DownSince = model.NodeDown, 1
				if err := txn.NodeWriter().Upsert(&n); err != nil {
					t.Fatal(err)
				}
			})
		}, ""},
		{"the job has a lower priority", func(c *cluster, p *model.Plan) { p.Priority = 49 }, "its priority 50 is above 49"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := movingCluster(t)
			plan := c.moving("l0", "large", "n2")
			if tt.change != nil {
				tt.change(c, plan)
			}
			v, err := planner.Verify(c.store.Snapshot(), plan, 2, nil, &planner.Scratch{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(v.Rejected) > 0 {
				got = v.Rejected[0].Reason
			}
			if !strings.Contains(got, tt.reason) || (got == "") != (tt.reason == "") {
				t.Errorf("%q, want %q", got, tt.reason)
			}
		})
	}
}

// A move without one of its halves, or that serves no placement, is malformed.
func TestValidate_RefusesHalfMoves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*model.CommitGroup)
		fault  string
	}{
		{"no stop", func(g *model.CommitGroup) { g.Stops = nil }, "which its commit group does not stop"},
		{"no placement", func(g *model.CommitGroup) { g.Placements = g.Placements[:1] }, "which its commit group does not place"},
		{"a plain stop", func(g *model.CommitGroup) { g.Stops[0].MovedTo = "" }, "which its commit group does not stop"},
		{"no link", func(g *model.CommitGroup) { g.Placements[1].MovedFrom = "" }, "is of job default/small, the plan of default/large"},
		{"nothing to make room for", func(g *model.CommitGroup) { g.Placements = g.Placements[1:] }, "make room for no placement"},
		{"twice", func(g *model.CommitGroup) { g.Stops = append(g.Stops, g.Stops[0]) }, "moved twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := movingCluster(t).moving("l0", "large", "n2")
			tt.change(&plan.Groups[0])
			if err := planner.Validate(plan); err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%v, want %q", err, tt.fault)
			}
		})
	}
}
