package scheduler_test

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

const hour = int64(time.Hour)

// withDisconnect keeps instances for disconnected nodes: for a duration, or if it is 0,
// until the node returns.
func withDisconnect(lostAfter int64, replace bool) func(*model.Group) {
	return func(g *model.Group) { g.Disconnect = &model.Disconnect{LostAfter: lostAfter, Replace: replace} }
}

// set changes a node as servers do.
func (w *fixture) set(id string, change apply.NodeChange) {
	w.write(func(txn *state.Txn) { apply.NodeStatus(txn, w.now, []string{id}, change) })
}

func (w *fixture) silent(id string) { w.set(id, apply.NodeChange{Status: new(model.NodeDown)}) }
func (w *fixture) back(id string)   { w.set(id, apply.NodeChange{Status: new(model.NodeReady)}) }

// disconnectFixture has two nodes, and allocation a of job j on n1.
func disconnectFixture(t *testing.T, g func(*model.Group)) *fixture {
	w := newFixture(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.run(job("j", 50, 6, 6).With(g).Obj(), "a", "n1")
	return w
}

// recheck returns when a job is evaluated again without a change.
func (w *fixture) recheck(id string) int64 {
	w.t.Helper()
	out := w.plan(id)
	if !out.Plan.Empty() {
		w.t.Errorf("%s: %s", id, format(out))
	}
	return out.RecheckAt
}

func TestDisconnect_KeepsUntilNodeReturns(t *testing.T) {
	t.Parallel()
	w := disconnectFixture(t, withDisconnect(0, false))
	w.silent("n1")
	for range 3 {
		if at := w.recheck("j"); at != 0 {
			t.Errorf("rechecked at %v", at)
		}
		w.now += 1000 * hour
	}
	w.back("n1")
	w.want("j", "")
	if a := w.store.Snapshot().Alloc("a"); !a.Live() || a.Unknown(w.store.Snapshot().Node("n1")) {
		t.Errorf("%+v", a)
	}
}

func TestDisconnect_LostAfterDuration(t *testing.T) {
	t.Parallel()
	w := disconnectFixture(t, withDisconnect(6*hour, false))
	w.silent("n1")
	if at := w.recheck("j"); at != 7*hour {
		t.Errorf("rechecked at %v", time.Duration(at))
	}
	w.now = 7*hour - 1
	if at := w.recheck("j"); at != 7*hour {
		t.Errorf("rechecked at %v", time.Duration(at))
	}
	w.now = 7 * hour
	w.want("j", "j.g[0]#1@n2, lost a")
	w.back("n1")
	w.want("j", "")
}

// The time starts again with every disconnect.
func TestDisconnect_DurationRestarts(t *testing.T) {
	t.Parallel()
	w := disconnectFixture(t, withDisconnect(6*hour, false))
	w.silent("n1")
	w.now = 5 * hour
	w.back("n1")
	w.want("j", "")
	w.now = 20 * hour
	w.silent("n1")
	if at := w.recheck("j"); at != 26*hour {
		t.Errorf("rechecked at %v", time.Duration(at))
	}
}

func TestDisconnect_ReplacementRunsUntilReturn(t *testing.T) {
	t.Parallel()
	w := disconnectFixture(t, withDisconnect(6*hour, true))
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	if at := w.recheck("j"); at != 7*hour {
		t.Errorf("rechecked at %v", time.Duration(at))
	}
	w.now += hour
	w.back("n1")
	w.want("j", "stop j.g[0]#1") // the original stays
	w.want("j", "")

	w.silent("n1")
	w.want("j", "j.g[0]#2@n2")
	w.now = 8 * hour
	w.want("j", "lost a") // the replacement takes its index
	w.back("n1")
	w.want("j", "")
}

// A replacement may be lost or fail as well; there is one at a time.
func TestDisconnect_ReplacementIsReplaced(t *testing.T) {
	t.Parallel()
	w := disconnectFixture(t, withDisconnect(0, true))
	w.node("n3")
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	w.ends(model.ClientFailed, "j.g[0]#1")
	w.want("j", "j.g[0]#2@n2")
	w.silent("n2")
	w.want("j", "j.g[0]#3@n3")
	w.back("n2")
	w.want("j", "stop j.g[0]#3")
	w.back("n1")
	w.want("j", "stop j.g[0]#2")
}

func TestDisconnect_StopsDuplicateOfCompletedWork(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.run(job("j", 50, 6, 6).Type(model.JobBatch).With(withDisconnect(0, true)).Obj(), "a", "n1")
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	w.ends(model.ClientComplete, "j.g[0]#1")
	w.want("j", "stop a")
	w.back("n1")
	w.want("j", "")
}

// Operators override the disconnect block by changes of the node or the job.
func TestDisconnect_OperatorOverrides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(*fixture)
		want string
	}{
		"drained": {func(w *fixture) { w.set("n1", apply.NodeChange{Drain: new(true)}) }, "j.g[0]#1@n2, lost a"},
		"tainted": {func(w *fixture) { w.set("n1", apply.NodeChange{Taint: []model.Taint{failing}}) }, "j.g[0]#1@n2, lost a"},
		"deleted": {func(w *fixture) { w.write(func(txn *state.Txn) { apply.NodeDelete(txn, w.now, []string{"n1"}) }) }, "j.g[0]#1@n2, lost a"},
		"stopped": {func(w *fixture) {
			w.job(job("j", 50, 6, 6).With(withDisconnect(0, false)).Change(func(j *model.Job) { j.Stopped = true }).Obj())
		}, "stop a"},
		"scaled down": {func(w *fixture) { w.job(job("j", 50, 6, 6).With(withDisconnect(0, false)).Count(0).Obj()) }, "stop a"},
		"impatient":   {func(w *fixture) { w.job(job("j", 50, 6, 6).Obj()) }, "j.g[0]#1@n2, lost a"},
		"updated":     {func(w *fixture) { w.job(job("j", 50, 5, 6).With(withDisconnect(0, false)).Obj()) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := disconnectFixture(t, withDisconnect(0, false))
			w.silent("n1")
			w.want("j", "")
			c.do(w)
			w.want("j", c.want)
		})
	}
}

// An allocation that was updated meanwhile moves to the newest version on return.
func TestDisconnect_UpdatesOnReturn(t *testing.T) {
	t.Parallel()
	w := disconnectFixture(t, withDisconnect(0, false))
	w.silent("n1")
	w.job(job("j", 70, 6, 6).With(withDisconnect(0, false)).Obj())
	w.want("j", "")
	w.back("n1")
	w.want("j", "keep a")

	w = disconnectFixture(t, withDisconnect(0, true))
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	w.job(job("j", 50, 5, 6).With(withDisconnect(0, true)).Obj())
	w.want("j", "j.g[0]#2@n2, stop j.g[0]#1")
	w.back("n1")
	w.want("j", "stop a") // and it is not replaced once more
}

func TestDisconnect_SystemJobIsKeptAndNotReplaced(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.run(job("s", 50, 2, 2).Type(model.JobSystem).With(withDisconnect(6*hour, true)).Obj(), "s1", "n1", "s2", "n2")
	w.silent("n1")
	if at := w.recheck("s"); at != 7*hour {
		t.Errorf("rechecked at %v", time.Duration(at))
	}
	w.back("n1")
	w.want("s", "")
	w.silent("n1")
	w.now = 7 * hour
	w.want("s", "lost s1")
}

// A disconnected member of a gang returns, or is placed again on a feasible node.
func TestDisconnect_GangMember(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	gang := job("j", 50, 6, 6).Count(2).With(withDisconnect(6*hour, false)).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj()
	w.run(gang, "a", "n1", "b", "n2")
	w.silent("n1")
	w.want("j", "")
	w.now = 7 * hour
	w.want("j", "lost a, g waits for 1")
}

// A budget does not count allocations on disconnected nodes as available.
func TestDisconnect_IsUnavailableToBudgets(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.write(func(txn *state.Txn) {
		txn.BudgetWriter().Upsert(&model.Budget{Namespace: "default", Name: "b", Labels: map[string]string{"app": "j"}, MinAvailable: &model.Bound{Number: 1}})
	})
	w.run(job("j", 50, 6, 6).Count(2).With(withDisconnect(0, false)).With(func(g *model.Group) { g.Labels = map[string]string{"app": "j"} }).Obj(), "a", "n1", "b", "n2")
	available := func() int {
		must(w.store.Snapshot().Check())
		n, _ := w.store.Snapshot().BudgetAvailability(0)
		return n
	}
	if n := available(); n != 2 {
		t.Errorf("%d available", n)
	}
	w.silent("n1")
	if n := available(); n != 1 {
		t.Errorf("%d available while a node is disconnected", n)
	}
	w.back("n1")
	if n := available(); n != 2 {
		t.Errorf("%d available after its return", n)
	}
}

// A replacement continues from the instance that ended last. That is the original if it was
// evicted after its node had returned and its replacement had been stopped.
func TestDisconnect_ReplacementContinuesFromOriginal(t *testing.T) {
	t.Parallel()
	const minute = hour / 60
	w := disconnectFixture(t, func(g *model.Group) {
		g.Disconnect, g.Duration, g.Checkpoint = &model.Disconnect{Replace: true}, 10*hour, 5*minute
	})
	w.write(func(txn *state.Txn) {
		a := *w.store.Snapshot().Alloc("a")
		a.StartTime = hour
		txn.AllocWriter().Upsert(&a)
	})
	w.now = hour + 5*minute
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	w.now = hour + 8*minute
	w.back("n1")
	w.want("j", "stop j.g[0]#1")
	w.now = hour + 12*minute
	w.write(func(txn *state.Txn) {
		a := *w.store.Snapshot().Alloc("a")
		a.Desired, a.EndTime = model.DesiredEvict, w.now
		txn.AllocWriter().Upsert(&a)
	})
	w.now = hour + 20*minute
	a := w.plan("j").Plan.Groups[0].Placements[0]
	if a.ID != "j.g[0]#2" || a.SavedWork != 10*minute {
		t.Errorf("%s continues after %d min, want 10", a.ID, a.SavedWork/minute)
	}
}
