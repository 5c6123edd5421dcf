package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// fails ends an allocation with a failure after it ran for a duration.
func (w *fixture) fails(id string, worked time.Duration) {
	w.now += int64(worked)
	w.write(func(txn *state.Txn) {
		apply.ClientUpdates(txn, w.now, []apply.ClientUpdate{{AllocID: id, Status: model.ClientFailed}})
	})
}

// The delay before a replacement doubles with every failure in a row, and evaluations
// before do nothing; a long run resets it.
func TestRetry_DelayDoubles(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.JobType{model.JobService, model.JobBatch, model.JobSystem} {
		w := newFixture(t)
		w.now = int64(time.Hour)
		w.node("n1")
		w.job(job("j", 50, 1, 1).Type(kind).Obj())
		w.want("j", "j.g[0]@n1")
		name, n := "j.g[0]", 0
		for _, seconds := range []int64{0, 5, 10, 20, 40, 80, 160, 300, 300} {
			wait := seconds * int64(time.Second)
			w.fails(name, time.Millisecond)
			at := w.now + wait
			for wait > 0 && w.now < at {
				out := w.plan("j")
				if !out.Plan.Empty() || !out.Placed() || out.RecheckAt != at {
					t.Fatalf("%v after %d failures: %s, again at %v, want %v", kind, n+1, format(out), out.RecheckAt, at)
				}
				w.now += wait / 2
			}
			n++
			name = fmt.Sprintf("j.g[0]#%d", n)
			w.want("j", name+"@n1")
		}
		w.fails(name, 10*time.Minute)
		w.want("j", fmt.Sprintf("j.g[0]#%d@n1", n+1))
		w.fails(fmt.Sprintf("j.g[0]#%d", n+1), time.Millisecond)
		if out := w.plan("j"); out.RecheckAt != w.now+int64(5*time.Second) {
			t.Errorf("%v: after a long run the failure counts as the first: again at %v", kind, out.RecheckAt-w.now)
		}
	}
}

// Stopped and evicted allocations have not failed and are replaced at once, and a new
// version starts without failures.
func TestRetry_CountsFailuresOfCurrentVersionOnly(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.now = int64(time.Hour)
	w.node("n1")
	spec := func(cpu int64) *model.Job { return job("j", 50, cpu, 1).Obj() }
	w.job(spec(1))
	w.want("j", "j.g[0]@n1")
	w.fails("j.g[0]", 0)
	w.want("j", "j.g[0]#1@n1")
	w.write(func(txn *state.Txn) {
		gone := *txn.Alloc("j.g[0]#1")
		gone.Desired, gone.Client, gone.EndTime = model.DesiredEvict, model.ClientFailed, w.now
		txn.AllocWriter().Upsert(&gone)
	})
	w.want("j", "j.g[0]#2@n1")
	w.fails("j.g[0]#2", 0)
	if out := w.plan("j"); out.RecheckAt != w.now+int64(5*time.Second) {
		t.Errorf("an eviction between two failures reset the count: %s", format(out))
	}
	w.job(spec(2))
	w.want("j", "j.g[0]#3@n1")
}

// Instances of a group wait independently; members of a gang, which are placed together,
// wait for each other.
func TestRetry_GangWaitsTogether(t *testing.T) {
	t.Parallel()
	for _, gang := range []bool{false, true} {
		w := newFixture(t)
		w.now = int64(time.Hour)
		w.node("n1")
		w.job(job("j", 50, 1, 1).Count(2).Change(func(j *model.Job) { j.AllAtOnce = gang }).Obj())
		w.want("j", "j.g[0]@n1, j.g[1]@n1")
		w.fails("j.g[0]", 0)
		w.want("j", "j.g[0]#1@n1")
		w.fails("j.g[0]#1", 0)
		w.fails("j.g[1]", 0)
		want := "j.g[1]#1@n1"
		if gang {
			want = ""
		}
		w.want("j", want)
		if out := w.plan("j"); out.RecheckAt != w.now+int64(5*time.Second) {
			t.Errorf("gang %v: again at %v", gang, out.RecheckAt-w.now)
		}
	}
}
