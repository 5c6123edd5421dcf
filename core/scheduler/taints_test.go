package scheduler_test

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func tolerant(stay time.Duration) func(*model.Group) {
	return func(g *model.Group) {
		g.Tolerations = []model.Toleration{{Key: "failing", Operator: model.TolerationExists, Effect: model.NoExecute, For: stay}}
	}
}

// taint sets the taints of node n1.
func (w *fixture) taint(taints ...model.Taint) {
	w.write(func(txn *state.Txn) {
		apply.NodeStatus(txn, w.now, []string{"n1"}, apply.NodeChange{Taint: taints})
	})
}

var failing = model.Taint{Key: "failing", Effect: model.NoExecute}

// An allocation that a taint expels is stopped at once, whether or not another node fits.
func TestTaints_ExpelUntolerated(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2")
	w.run(job("j", 50, 6, 1).Obj(), "a", "n1")
	w.run(job("stays", 50, 4, 1).With(tolerant(0)).Obj(), "b", "n1")
	w.run(job("full", 50, 9, 1).Obj(), "c", "n2")
	w.run(job("all", 60, 0, 1).Type(model.JobSystem).Obj(), "s1", "n1", "s2", "n2")
	w.taint(failing)
	w.want("stays", "")
	w.want("all", "stop s1")
	w.want("j", "stop a, g waits for 1")
	w.taint(model.Taint{Key: "failing", Effect: model.NoSchedule})
	w.want("stays", "")
}

// If a taint is tolerated for some time, the job is evaluated again at its end, although
// no instance is missing.
func TestTaints_TolerateForDuration(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.now = int64(time.Hour)
	w.node("n1")
	j := job("j", 50, 6, 1).With(tolerant(5 * time.Minute)).Obj()
	w.run(j, "a", "n1")
	w.taint(failing)
	end := w.now + int64(5*time.Minute)
	for _, at := range []int64{w.now, w.now + int64(time.Minute)} {
		out, err := w.sched.Process(coretest.Eval(j), w.store.Snapshot(), at)
		must(err)
		if !out.Plan.Empty() || out.RecheckAt != end {
			t.Errorf("%s, and again at %v, want at %v", format(out), time.Duration(out.RecheckAt), time.Duration(end))
		}
	}
	w.node("n2")
	w.now = end
	w.want("j", "j.g[0]#1@n2, stop a")
}

// An allocation that is placed while the node already has the taint leaves when its time
// from the placement ends, without another change of the job.
func TestTaints_TolerateForDurationFromPlacement(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.now = int64(time.Hour)
	w.node("n1")
	w.taint(failing)
	w.now += int64(time.Hour)
	end := w.now + int64(5*time.Minute)
	for _, j := range []*model.Job{
		job("j", 50, 2, 1).With(tolerant(5 * time.Minute)).Obj(),
		job("all", 50, 1, 1).Type(model.JobSystem).With(tolerant(5 * time.Minute)).Obj(),
	} {
		w.job(j)
		out, err := w.sched.Process(coretest.Eval(j), w.store.Snapshot(), w.now)
		must(err)
		if out.RecheckAt != end || out.Plan.Empty() {
			t.Errorf("%s, and again at %v, want at %v", format(out), time.Duration(out.RecheckAt), time.Duration(end))
		}
	}
	forever := job("stays", 50, 1, 1).With(tolerant(0)).Obj()
	w.job(forever)
	if out, err := w.sched.Process(coretest.Eval(forever), w.store.Snapshot(), w.now); err != nil || out.RecheckAt != 0 || out.Plan.Empty() {
		t.Errorf("%s, %v", format(out), err)
	}
}
