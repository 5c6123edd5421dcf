package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (w *fixture) change(id string, f func(*model.Node)) {
	n := *w.store.Snapshot().Node(id)
	f(&n)
	w.write(func(txn *state.Txn) { must(txn.NodeWriter().Upsert(&n)) })
}

func (w *fixture) ends(status model.ClientStatus, ids ...string) {
	w.write(func(txn *state.Txn) {
		for _, id := range ids {
			apply.ClientUpdates(txn, w.now, []apply.ClientUpdate{{AllocID: id, Status: status}})
		}
	})
}

func TestReconcile_ScalesUpAndDownAndStops(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.job(job("j", 50, 1, 1).Count(2).Obj())
	w.want("j", "j.g[0]@n1, j.g[1]@n1")
	w.want("j", "")
	w.job(job("j", 50, 1, 1).Count(3).Obj())
	w.want("j", "j.g[2]@n1, keep j.g[0], keep j.g[1]")
	w.job(job("j", 50, 1, 1).Count(1).Obj())
	w.want("j", "keep j.g[0], stop j.g[1], stop j.g[2]")
	w.job(job("j", 50, 1, 1).Count(2).Obj())
	w.want("j", "j.g[1]#1@n1, keep j.g[0]") // an ID is never reused
	w.job(job("j", 50, 1, 1).Count(2).Change(func(j *model.Job) { j.Stopped = true }).Obj())
	w.want("j", "stop j.g[0], stop j.g[1]#1")
	w.want("j", "")
	w.job(job("j", 50, 1, 1).Count(1).Obj())
	w.want("j", "j.g[0]#1@n1")
}

func TestReconcile_UpdatesInPlaceOrReplaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		next *model.Job
		want string
	}{
		{"priority", job("j", 70, 6, 1).Obj(), "keep a"},
		{"labels", job("j", 50, 6, 1).With(func(g *model.Group) { g.Labels = map[string]string{"x": "y"} }).Obj(), "keep a"},
		{"a constraint that holds", job("j", 50, 6, 1).With(func(g *model.Group) {
			g.Constraints = []model.Constraint{{Attribute: "zone", Operator: "=", Value: "a"}}
		}).Obj(), "keep a"},
		{"a constraint that does not hold", job("j", 50, 6, 1).With(func(g *model.Group) {
			g.Constraints = []model.Constraint{{Attribute: "zone", Operator: "=", Value: "b"}}
		}).Obj(), "j.g[0]#1@n2, stop a"},
		{"a constraint on the node itself", job("j", 50, 6, 1).With(func(g *model.Group) {
			g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: "!=", Value: "n1"}}
		}).Obj(), "j.g[0]#1@n2, stop a"},
		{"smaller", job("j", 50, 5, 1).Obj(), "j.g[0]#1@n1, stop a"},
		{"larger, into its own capacity", job("j", 50, 10, 1).Obj(), "j.g[0]#1@n1, stop a"},
		{"too large", job("j", 50, 11, 1).Obj(), "g waits for 1"},
		{"a port", job("j", 50, 6, 1).With(func(g *model.Group) { g.Ports = []uint16{80} }).Obj(), "j.g[0]#1@n1, stop a"},
		{"another duration", job("j", 50, 6, 1).With(func(g *model.Group) { g.Duration = 5 }).Obj(), "j.g[0]#1@n1, stop a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t)
			w.node("n1", zone("a"))
			w.node("n2", zone("b"))
			w.run(job("j", 50, 6, 1).Obj(), "a", "n1")
			w.job(c.next)
			w.want("j", c.want)
		})
	}
}

func TestReconcile_NodeDownReplacesLost(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2")
	w.run(job("j", 50, 6, 6).Obj(), "a", "n1")
	w.change("n1", func(n *model.Node) { n.Status = model.NodeDown })
	w.want("j", "j.g[0]#1@n2, lost a")
	w.change("n2", func(n *model.Node) { n.Status = model.NodeDown })
	w.want("j", "lost j.g[0]#1, g waits for 1")
	w.change("n1", func(n *model.Node) { n.Status = model.NodeReady })
	w.want("j", "j.g[0]#2@n1")
}

func TestReconcile_DrainKeepsUntilReplaced(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2")
	w.run(job("high", 90, 10, 10).Obj(), "h", "n2")
	w.run(job("j", 50, 6, 6).Obj(), "a", "n1")
	w.change("n1", func(n *model.Node) { n.Drain = true })
	w.want("j", "g waits for 1")
	if a := w.store.Snapshot().Alloc("a"); !a.Live() {
		t.Error("it was stopped without a replacement")
	}
	w.ends(model.ClientFailed, "h")
	w.want("j", "j.g[0]#1@n2, stop a")
}

// The replacement of a draining allocation may evict lower priorities on its new node.
func TestReconcile_DrainMayEvict(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2")
	w.run(job("low", 10, 10, 10).Obj(), "l", "n2")
	w.run(job("j", 50, 6, 6).Obj(), "a", "n1")
	w.change("n1", func(n *model.Node) { n.Drain = true })
	w.want("j", "j.g[0]#1@n2 over l, stop a")
	w.want("low", "g waits for 1")
}

func TestReconcile_CompletedAndFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   model.JobType
		status model.ClientStatus
		want   string
	}{
		{model.JobBatch, model.ClientComplete, ""},
		{model.JobBatch, model.ClientFailed, "j.g[0]#1@n1"},
		{model.JobService, model.ClientFailed, "j.g[0]#1@n1"},
		{model.JobSysBatch, model.ClientComplete, ""},
		{model.JobSysBatch, model.ClientFailed, "j.g[0]#1@n1"},
		{model.JobSystem, model.ClientFailed, "j.g[0]#1@n1"},
	} {
		t.Run(c.kind.String()+" "+c.status.String(), func(t *testing.T) {
			w := newFixture(t)
			w.node("n1")
			w.job(job("j", 50, 1, 1).Type(c.kind).Obj())
			w.want("j", "j.g[0]@n1")
			w.ends(c.status, "j.g[0]")
			w.want("j", c.want)
		})
	}
}

// Of two allocations with one index the older one is retained.
func TestReconcile_StopsDuplicates(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	j := job("j", 50, 1, 1).Obj()
	w.run(j, "a", "n1")
	w.run(job("j", 50, 1, 1).Obj(), "b", "n1") // also index 0
	w.want("j", "keep a, stop b")
}

func TestReconcile_StopsRemovedGroups(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.job(job("j", 50, 1, 1).Group("h", 1).Obj())
	w.want("j", "j.g[0]@n1, j.h[0]@n1")
	w.job(job("j", 50, 1, 1).Obj())
	w.want("j", "keep j.g[0], stop j.h[0]")
}

func TestGang_AllOrNothing(t *testing.T) {
	t.Parallel()
	gang := func(count int) *model.Job {
		return job("j", 50, 6, 6).Count(count).Group("h", 1).Ask(4, 4, 0).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj()
	}
	w := newFixture(t)
	w.node("n1")
	w.run(job("low", 10, 10, 10).Obj(), "l", "n1")
	w.job(gang(2))
	w.want("j", "g waits for 2, h waits for 1")
	if !w.store.Snapshot().Alloc("l").Live() {
		t.Error("a gang that is not placed evicted allocations")
	}
	w.node("n2")
	w.want("j", "j.g[0]@n2, j.g[1]@n1 over l, j.h[0]@n1")
	w.ends(model.ClientFailed, "j.g[0]", "j.h[0]")
	w.change("n2", func(n *model.Node) { n.Ineligible = true })
	w.want("j", "g waits for 1, h waits for 1")
}

func TestSystem_FollowsTheNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2", func(n *model.Node) { n.Ineligible = true })
	w.node("n3")
	w.run(job("low", 10, 10, 10).Obj(), "l", "n3")
	w.job(job("s", 50, 2, 2).Type(model.JobSystem).Obj())
	w.want("s", "s.g[0]@n1, s.g[1]@n3 over l")
	w.node("n4")
	w.want("s", "s.g[2]@n4")
	w.change("n4", func(n *model.Node) { n.Status = model.NodeDown })
	w.want("s", "lost s.g[2]")
	w.change("n4", func(n *model.Node) { n.Status = model.NodeReady })
	w.want("s", "s.g[2]#1@n4")
	w.change("n4", func(n *model.Node) { n.Drain = true })
	w.want("s", "stop s.g[2]#1")
	w.change("n1", func(n *model.Node) { n.Ineligible = true })
	w.want("s", "") // running allocations may stay
	w.job(job("s", 60, 2, 2).Type(model.JobSystem).Obj())
	w.want("s", "keep s.g[0], keep s.g[1]")
	w.job(job("s", 60, 3, 2).Type(model.JobSystem).Obj())
	w.want("s", "s.g[1]#1@n3, stop s.g[0], stop s.g[1]")
}

// A full node blocks a system job on that node only.
func TestSystem_BlocksOnFullNodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2")
	w.node("n3")
	w.run(job("high", 90, 10, 10).Obj(), "h1", "n1", "h3", "n3")
	w.job(job("s", 50, 2, 2).Type(model.JobSystem).Obj())
	out := w.plan("s")
	if got := format(out); got != "s.g[0]@n2, g waits for 2" {
		t.Error(got)
	}
	if got := out.BlockedNodes; len(got) != 2 || got[0] != "n1" || got[1] != "n3" {
		t.Errorf("blocked on %v", got)
	}
}
