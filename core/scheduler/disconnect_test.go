package scheduler_test

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

const hour = int64(time.Hour)

// patient has instances kept for silent nodes: for so long, or 0: until they return.
func patient(lostAfter int64, replace bool) func(*model.Group) {
	return func(g *model.Group) { g.Disconnect = &model.Disconnect{LostAfter: lostAfter, Replace: replace} }
}

// set changes a node as servers do.
func (w *town) set(id string, change apply.NodeChange) {
	w.write(func(txn *state.Txn) { apply.NodeStatus(txn, w.now, []string{id}, change) })
}

func (w *town) silent(id string) { w.set(id, apply.NodeChange{Status: new(model.NodeDown)}) }
func (w *town) back(id string)   { w.set(id, apply.NodeChange{Status: new(model.NodeReady)}) }

// silentTown has two nodes, and allocation a of job j on n1.
func silentTown(t *testing.T, g func(*model.Group)) *town {
	w := newTown(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.run(job("j", 50, 6, 6).With(g).Obj(), "a", "n1")
	return w
}

// recheck is when a job is looked at again without having changed anything.
func (w *town) recheck(id string) int64 {
	w.t.Helper()
	out := w.plan(id)
	if !out.Plan.Empty() {
		w.t.Errorf("%s: %s", id, told(out))
	}
	return out.RecheckAt
}

func TestSilent_KeptUntilItReturns(t *testing.T) {
	w := silentTown(t, patient(0, false))
	w.silent("n1")
	for range 3 {
		if at := w.recheck("j"); at != 0 {
			t.Errorf("looked at again at %v", at)
		}
		w.now += 1000 * hour
	}
	w.back("n1")
	w.want("j", "")
	if a := w.store.Snapshot().Alloc("a"); !a.Live() || a.Unknown(w.store.Snapshot().Node("n1")) {
		t.Errorf("%+v", a)
	}
}

func TestSilent_LostAfterSomeTimeSinceItWasDown(t *testing.T) {
	w := silentTown(t, patient(6*hour, false))
	w.silent("n1")
	if at := w.recheck("j"); at != 7*hour {
		t.Errorf("looked at again at %v", time.Duration(at))
	}
	w.now = 7*hour - 1
	if at := w.recheck("j"); at != 7*hour {
		t.Errorf("looked at again at %v", time.Duration(at))
	}
	w.now = 7 * hour
	w.want("j", "j.g[0]#1@n2, lost a")
	w.back("n1")
	w.want("j", "")
}

// The time begins again with every silence.
func TestSilent_EverySilenceCountsForItself(t *testing.T) {
	w := silentTown(t, patient(6*hour, false))
	w.silent("n1")
	w.now = 5 * hour
	w.back("n1")
	w.want("j", "")
	w.now = 20 * hour
	w.silent("n1")
	if at := w.recheck("j"); at != 26*hour {
		t.Errorf("looked at again at %v", time.Duration(at))
	}
}

func TestSilent_AnotherStandsInUntilItReturns(t *testing.T) {
	w := silentTown(t, patient(6*hour, true))
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	if at := w.recheck("j"); at != 7*hour {
		t.Errorf("looked at again at %v", time.Duration(at))
	}
	w.now += hour
	w.back("n1")
	w.want("j", "stop j.g[0]#1") // the original stays
	w.want("j", "")

	w.silent("n1")
	w.want("j", "j.g[0]#2@n2")
	w.now = 8 * hour
	w.want("j", "lost a") // and who stood in for it has its place
	w.back("n1")
	w.want("j", "")
}

// Who stands in may be lost as well, or fail; one at a time takes the place.
func TestSilent_StandInsAreReplacedToo(t *testing.T) {
	w := silentTown(t, patient(0, true))
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

func TestSilent_WorkIsDoneOnce(t *testing.T) {
	w := newTown(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.run(job("j", 50, 6, 6).Type(model.JobBatch).With(patient(0, true)).Obj(), "a", "n1")
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	w.ends(model.ClientComplete, "j.g[0]#1")
	w.want("j", "stop a")
	w.back("n1")
	w.want("j", "")
}

// What an operator says of the node, or of the job, counts more than patience.
func TestSilent_OperatorsEndIt(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*town)
		want string
	}{
		"drained": {func(w *town) { w.set("n1", apply.NodeChange{Drain: new(true)}) }, "j.g[0]#1@n2, lost a"},
		"tainted": {func(w *town) { w.set("n1", apply.NodeChange{Taint: []model.Taint{failing}}) }, "j.g[0]#1@n2, lost a"},
		"deleted": {func(w *town) { w.write(func(txn *state.Txn) { apply.NodeDelete(txn, w.now, []string{"n1"}) }) }, "j.g[0]#1@n2, lost a"},
		"stopped": {func(w *town) {
			w.job(job("j", 50, 6, 6).With(patient(0, false)).Change(func(j *model.Job) { j.Stopped = true }).Obj())
		}, "stop a"},
		"scaled down": {func(w *town) { w.job(job("j", 50, 6, 6).With(patient(0, false)).Count(0).Obj()) }, "stop a"},
		"impatient":   {func(w *town) { w.job(job("j", 50, 6, 6).Obj()) }, "j.g[0]#1@n2, lost a"},
		"updated":     {func(w *town) { w.job(job("j", 50, 5, 6).With(patient(0, false)).Obj()) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := silentTown(t, patient(0, false))
			w.silent("n1")
			w.want("j", "")
			c.do(w)
			w.want("j", c.want)
		})
	}
}

// What was updated meanwhile is brought to the newest version when it returns.
func TestSilent_UpdatedWhenItReturns(t *testing.T) {
	w := silentTown(t, patient(0, false))
	w.silent("n1")
	w.job(job("j", 70, 6, 6).With(patient(0, false)).Obj())
	w.want("j", "")
	w.back("n1")
	w.want("j", "keep a")

	w = silentTown(t, patient(0, true))
	w.silent("n1")
	w.want("j", "j.g[0]#1@n2")
	w.job(job("j", 50, 5, 6).With(patient(0, true)).Obj())
	w.want("j", "j.g[0]#2@n2, stop j.g[0]#1")
	w.back("n1")
	w.want("j", "stop a") // rather than to replace it once more
}

func TestSilent_SystemJobsAreKeptAndNotReplaced(t *testing.T) {
	w := newTown(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.run(job("s", 50, 2, 2).Type(model.JobSystem).With(patient(6*hour, true)).Obj(), "s1", "n1", "s2", "n2")
	w.silent("n1")
	if at := w.recheck("s"); at != 7*hour {
		t.Errorf("looked at again at %v", time.Duration(at))
	}
	w.back("n1")
	w.want("s", "")
	w.silent("n1")
	w.now = 7 * hour
	w.want("s", "lost s1")
}

// A gang is not torn apart: its part comes back, or is placed again where it fits.
func TestSilent_PartsOfAGang(t *testing.T) {
	w := newTown(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	gang := job("j", 50, 6, 6).Count(2).With(patient(6*hour, false)).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj()
	w.run(gang, "a", "n1", "b", "n2")
	w.silent("n1")
	w.want("j", "")
	w.now = 7 * hour
	w.want("j", "lost a, g waits for 1")
}

// Nobody knows whether it works, so a budget cannot count on it.
func TestSilent_IsNotAvailable(t *testing.T) {
	w := newTown(t)
	w.now = hour
	w.node("n1")
	w.node("n2")
	w.write(func(txn *state.Txn) {
		txn.UpsertBudget(&model.Budget{Namespace: "default", Name: "b", Labels: map[string]string{"app": "j"}, MinAvailable: &model.Bound{Number: 1}})
	})
	w.run(job("j", 50, 6, 6).Count(2).With(patient(0, false)).With(func(g *model.Group) { g.Labels = map[string]string{"app": "j"} }).Obj(), "a", "n1", "b", "n2")
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
		t.Errorf("%d available while a node is silent", n)
	}
	w.back("n1")
	if n := available(); n != 2 {
		t.Errorf("%d available when it is back", n)
	}
}
