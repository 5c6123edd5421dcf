package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
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

// A new version replaces instances if their tasks change, or metadata that these can read.
func TestReconcile_ReplacesChangedTasks(t *testing.T) {
	t.Parallel()
	base := func() *model.Job {
		return job("j", 50, 6, 1).With(func(g *model.Group) {
			g.Meta = map[string]string{"a": "1"}
			g.Tasks = []*model.Task{{Name: "t", Driver: "exec", Config: []byte(`{"command":"x"}`), Env: map[string]string{"A": "1"}}}
		}).Obj()
	}
	for name, change := range map[string]func(*model.Job){
		"nothing":      func(*model.Job) {},
		"the priority": func(j *model.Job) { j.Priority = 60 },
		"the command":  func(j *model.Job) { j.Groups[0].Tasks[0].Config = []byte(`{"command":"y"}`) },
		"a variable":   func(j *model.Job) { j.Groups[0].Tasks[0].Env = nil },
		"the user":     func(j *model.Job) { j.Groups[0].Tasks[0].User = "u" },
		"the signal":   func(j *model.Job) { j.Groups[0].Tasks[0].KillSignal = "SIGINT" },
		"the leader":   func(j *model.Job) { j.Groups[0].Tasks[0].Leader = true },
		"another task": func(j *model.Job) { j.Groups[0].Tasks = append(j.Groups[0].Tasks, &model.Task{Name: "u"}) },
		"metadata":     func(j *model.Job) { j.Groups[0].Meta = nil },
		"job metadata": func(j *model.Job) { j.Meta = map[string]string{"b": "2"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.node("n1")
			w.run(base(), "a", "n1")
			next := base()
			change(next)
			w.job(next)
			want := "j.g[0]#1@n1, stop a"
			if name == "nothing" || name == "the priority" {
				want = "keep a"
			}
			w.want("j", want)
		})
	}
}

// Completed instances run again if running ones would be replaced, or if the job was stopped
// and submitted again, and then from the start.
func TestReconcile_RunsCompletedAgain(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.JobType{model.JobBatch, model.JobSysBatch, model.JobService} {
		t.Run(kind.String(), func(t *testing.T) {
			w := newFixture(t)
			w.node("n1")
			next := func(change func(*model.Job)) *model.Job {
				j := job("j", 50, 1, 1).Type(kind).With(func(g *model.Group) { g.Checkpoint, g.Duration = 1, 10 }).Obj()
				change(j)
				return j
			}
			w.job(next(func(*model.Job) {}))
			w.want("j", "j.g[0]@n1")
			w.now += 10
			w.ends(model.ClientComplete, "j.g[0]")
			w.want("j", "")
			w.job(next(func(j *model.Job) { j.Priority = 60 }))
			w.want("j", "")
			w.job(next(func(j *model.Job) { j.Groups[0].Duration = 20 }))
			w.want("j", "j.g[0]#1@n1")
			if a := w.store.Snapshot().Alloc("j.g[0]#1"); a.SavedWork != 0 {
				t.Errorf("it continues at %d", a.SavedWork)
			}
			w.now += 10
			w.ends(model.ClientComplete, "j.g[0]#1")
			w.want("j", "")
			w.job(next(func(j *model.Job) { j.Groups[0].Duration, j.Stopped = 20, true }))
			w.job(next(func(j *model.Job) { j.Groups[0].Duration, j.SubmitTime = 20, w.now }))
			w.want("j", "j.g[0]#2@n1")
		})
	}
}

// A job that was purged and is registered again is another one, although both are at version 0: what
// runs is stopped, and nothing of it counts, whatever the clocks of the leaders were.
func TestReconcile_PurgedJobIsAnotherOne(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.JobType{model.JobBatch, model.JobSysBatch, model.JobService, model.JobSystem} {
		t.Run(kind.String(), func(t *testing.T) {
			w := newFixture(t)
			w.node("n1")
			w.node("n2")
			j := func() *model.Job {
				return job("j", 50, 1, 1).Count(1).Type(kind).With(func(g *model.Group) {
					g.Checkpoint, g.Duration = 1, 10
					g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: "=", Value: "n1"}}
				}).Obj()
			}
			purge := func() {
				w.write(func(txn *state.Txn) { txn.JobWriter().Delete(model.JobKey{Namespace: "default", ID: "j"}) })
			}
			w.job(j())
			w.want("j", "j.g[0]@n1")
			purge()
			again := j()
			again.Groups[0].Name = "g" // as before
			again.Groups[0].Tasks = []*model.Task{{Name: "other"}}
			w.sched = scheduler.New(scheduler.Config{
				Policies: coretest.Policies(func() sdk.Policy { return nomad.New() }), NewID: func(*model.Group, int, int) string { return "second" },
			})
			w.job(again)
			w.now += 5
			w.want("j", "second@n1, stop j.g[0]")
			if a := w.store.Snapshot().Alloc("second"); a.SavedWork != 0 {
				t.Errorf("it continues at %d", a.SavedWork)
			}
			w.now += 100
			w.ends(model.ClientComplete, "second")
			w.now -= 50 // the clock of another leader
			purge()
			third := j()
			third.SubmitTime = w.now
			w.job(third)
			w.sched = scheduler.New(scheduler.Config{
				Policies: coretest.Policies(func() sdk.Policy { return nomad.New() }), NewID: func(*model.Group, int, int) string { return "third" },
			})
			w.want("j", "third@n1")
		})
	}
}

// A stop ends the run of a job: neither completed work nor that of checkpoints counts afterwards.
// Scaling to 0 and back retains both.
func TestReconcile_StartsAnewAfterStop(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{true, false} {
		w := newFixture(t)
		w.node("n1")
		next := func(count int) *model.Job {
			return job("j", 50, 1, 1).Type(model.JobBatch).Count(count).With(func(g *model.Group) { g.Checkpoint, g.Duration = 1, 100 }).Obj()
		}
		w.job(next(2))
		w.want("j", "j.g[0]@n1, j.g[1]@n1")
		w.now += 10
		w.ends(model.ClientComplete, "j.g[0]")
		again := next(2)
		if stops {
			stopped := next(2)
			stopped.Stopped = true
			w.job(stopped)
			w.want("j", "stop j.g[1]")
			again.SubmitTime = w.now
		} else {
			w.job(next(0))
			w.want("j", "stop j.g[1]")
		}
		w.job(again)
		want, saved := "j.g[1]#1@n1", int64(10)
		if stops {
			want, saved = "j.g[0]#1@n1, j.g[1]#1@n1", 0
		}
		w.want("j", want)
		if a := w.store.Snapshot().Alloc("j.g[1]#1"); a == nil || a.SavedWork != saved {
			t.Errorf("stopped %t: it continues as %+v, want saved work of %d", stops, a, saved)
		}
	}
}

// A completed instance of an earlier version does not count if another version has run since,
// although the current version equals its own.
func TestReconcile_RunsAgainAfterReturnToEarlierVersion(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.JobType{model.JobBatch, model.JobSysBatch} {
		for _, end := range []model.ClientStatus{model.ClientComplete, model.ClientFailed} {
			t.Run(fmt.Sprint(kind, end), func(t *testing.T) {
				w := newFixture(t)
				w.node("n1")
				version := func(duration int64) {
					w.job(job("j", 50, 1, 1).Type(kind).With(func(g *model.Group) { g.Duration = duration }).Obj())
				}
				isDone := func() bool {
					snap := w.store.Snapshot()
					j := snap.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: "j"})
					return j.IsDone(snap.AppendJobAllocs(nil, j.Key()))
				}
				version(10)
				w.want("j", "j.g[0]@n1")
				w.now += 10
				w.ends(model.ClientComplete, "j.g[0]")
				version(20)
				w.want("j", "j.g[0]#1@n1")
				w.now += 20
				w.ends(end, "j.g[0]#1")
				version(10)
				if isDone() {
					t.Error("the job is done before it runs again")
				}
				w.want("j", "j.g[0]#2@n1")
				w.ends(model.ClientFailed, "j.g[0]#2")
				w.want("j", "j.g[0]#3@n1")
				w.ends(model.ClientComplete, "j.g[0]#3")
				w.want("j", "")
				if got := isDone(); got != !kind.PerNode() {
					t.Errorf("the job is done: %t", got)
				}
			})
		}
	}
}

// A leader with a clock that is behind that of the one before may record that an instance ended
// before its job was submitted. It has completed in this run nevertheless.
func TestReconcile_RunsOnceIfClockOfLeaderIsBehind(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	spec := func(priority int32) *model.Job {
		return job("j", priority, 1, 1).Type(model.JobBatch).Change(func(j *model.Job) { j.SubmitTime = 100 }).Obj()
	}
	w.job(spec(50))
	w.now = 100
	w.want("j", "j.g[0]@n1")
	w.now = 70
	w.ends(model.ClientComplete, "j.g[0]")
	w.want("j", "")
	w.job(spec(60))
	w.want("j", "")
}

// Completed instances beyond the count do not make a job done.
func TestJob_IsNotDoneByInstancesBeyondItsCount(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.job(job("j", 50, 1, 1).Type(model.JobBatch).Count(3).Obj())
	w.want("j", "j.g[0]@n1, j.g[1]@n1, j.g[2]@n1")
	w.ends(model.ClientComplete, "j.g[1]", "j.g[2]")
	w.job(job("j", 50, 1, 1).Type(model.JobBatch).Count(1).Obj())
	w.want("j", "keep j.g[0]")
	snap := w.store.Snapshot()
	j := snap.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: "j"})
	if j.IsDone(snap.AppendJobAllocs(nil, j.Key())) {
		t.Error("the job is done, but its instance runs")
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
