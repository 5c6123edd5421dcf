package lookahead_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// forecastNow is the time of forecasts in tests.
const forecastNow = int64(1_000_000 * time.Second)

// A queueState builds the state of a cluster with a full node and jobs that wait.
type queueState struct {
	txn *state.Txn
}

func newQueueState(t *testing.T) *queueState {
	t.Helper()
	q := &queueState{txn: state.New().Begin(1)}
	if err := q.txn.NodeWriter().Upsert(coretest.Node("n1", 1000, 1000, 1000)); err != nil {
		t.Fatal(err)
	}
	return q
}

// run adds an allocation that has run for a time, of a job with a duration or none.
func (q *queueState) run(id string, cpu int64, ran, duration time.Duration) {
	job := coretest.Job(id).Type(model.JobBatch).Ask(cpu, 0, 0).With(func(g *model.Group) { g.Duration = int64(duration) }).Obj()
	if err := q.txn.JobWriter().Upsert(job); err != nil {
		panic(err)
	}
	a := coretest.Running(id, job, 0, 0, "n1")
	a.Started, a.StartTime, a.Client = true, forecastNow-int64(ran), model.ClientRunning
	q.txn.AllocWriter().Upsert(a)
}

// ended adds runs of a job that have ended by themselves.
func (q *queueState) ended(jobID string, runs ...time.Duration) {
	job := q.txn.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: jobID})
	for i, length := range runs {
		a := coretest.Running(fmt.Sprintf("%s-%d", jobID, i), job, 0, 0, "n1")
		a.Started, a.StartTime, a.EndTime, a.Client = true, forecastNow-int64(length), forecastNow, model.ClientComplete
		q.txn.AllocWriter().Upsert(a)
	}
}

// wait adds a job with waiting instances.
func (q *queueState) wait(id string, priority int32, count int, cpu int64, duration time.Duration) {
	job := coretest.Job(id).Type(model.JobBatch).Priority(priority).Count(count).Ask(cpu, 0, 0).With(func(g *model.Group) { g.Duration = int64(duration) }).Obj()
	if err := q.txn.JobWriter().Upsert(job); err != nil {
		panic(err)
	}
	eval := coretest.Eval(job)
	eval.ID, eval.Status, eval.SnapshotIndex, eval.Escaped = "eval-"+id, model.EvalBlocked, 1, true
	eval.Failed, eval.Queued = map[string]*model.Explanation{job.Groups[0].Name: {}}, map[string]int{job.Groups[0].Name: count}
	q.txn.EvalWriter().Upsert(eval)
}

func (q *queueState) forecast(t *testing.T) *lookahead.Queue {
	t.Helper()
	set := coretest.Policies()
	defer set.Unpin()
	f, err := lookahead.ForecastQueue(t.Context(), q.txn.Commit(), forecastNow, set)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func keyOf(id string) model.JobKey { return model.JobKey{Namespace: model.DefaultNamespace, ID: id} }

// after returns a quantile of times as the time from the forecast on.
func after(t *testing.T, times []int64, draws int, p float64) time.Duration {
	t.Helper()
	at, ok := lookahead.Quantile(times, draws, p)
	if !ok {
		t.Fatalf("%d of %d draws have a time", len(times), draws)
	}
	return time.Duration(at - forecastNow)
}

// The first job of the queue starts when the running one ends, and the second one when the
// first has ended: the stated durations are accurate to a quarter.
func TestForecastQueue_FollowsStatedDurations(t *testing.T) {
	t.Parallel()
	q := newQueueState(t)
	q.run("old", 1000, 4*time.Minute, 10*time.Minute)
	q.wait("second", 40, 1, 1000, time.Hour)
	q.wait("first", 60, 1, 1000, 20*time.Minute)
	f := q.forecast(t)
	if f.Draws != lookahead.ForecastDraws || f.Running != 1 || f.Ending != 1 || len(f.Jobs) != 2 {
		t.Fatalf("%+v", f)
	}
	first, second := f.Jobs[keyOf("first")], f.Jobs[keyOf("second")]
	if first.Position != 1 || second.Position != 2 || first.EvalID != "eval-first" || first.Waiting != 1 {
		t.Errorf("positions %+v, %+v", first, second)
	}
	low, mid, high := after(t, first.First, f.Draws, 0.1), after(t, first.First, f.Draws, 0.5), after(t, first.First, f.Draws, 0.9)
	if low < 4*time.Minute || high > 9*time.Minute || low >= high || mid < low || mid > high {
		t.Errorf("the first starts in %s (%s to %s)", mid, low, high)
	}
	if wait := after(t, second.All, f.Draws, 0.5) - after(t, first.All, f.Draws, 0.5); wait != 20*time.Minute {
		t.Errorf("the second starts %s after the first", wait)
	}
}

// Runs that have ended prevail over the stated duration, and are sufficient without one.
// The draws are among those that are longer than the instance has run.
func TestForecastQueue_LearnsFromEndedRuns(t *testing.T) {
	t.Parallel()
	for _, stated := range []time.Duration{0, 5 * time.Hour} {
		q := newQueueState(t)
		q.run("old", 1000, 10*time.Minute, stated)
		q.ended("old", time.Minute, 2*time.Minute, 3*time.Minute, 30*time.Minute, 40*time.Minute)
		q.wait("next", 50, 1, 1000, 0)
		f := q.forecast(t)
		for _, at := range f.Jobs[keyOf("next")].First {
			if got := time.Duration(at - forecastNow); got != 20*time.Minute && got != 30*time.Minute {
				t.Errorf("stated %s: starts in %s", stated, got)
			}
		}
		if n := len(f.Jobs[keyOf("next")].First); n != f.Draws {
			t.Errorf("stated %s: starts in %d of %d draws", stated, n, f.Draws)
		}
	}
}

// A job starts in no draw if no predictable end makes room.
func TestForecastQueue_HasNoTimeIfNoEndIsKnown(t *testing.T) {
	t.Parallel()
	q := newQueueState(t)
	q.run("service", 900, time.Hour, 0)
	q.run("short", 100, time.Minute, 2*time.Minute)
	q.wait("large", 50, 1, 500, 0)
	f := q.forecast(t)
	if job := f.Jobs[keyOf("large")]; len(job.First)+len(job.All) > 0 || f.Running != 2 || f.Ending != 1 || f.Exhausted != 0 {
		t.Errorf("%+v, %+v", f, job)
	}
}

// The instances of a job may start at different times.
func TestForecastQueue_DistinguishesFirstAndLastInstance(t *testing.T) {
	t.Parallel()
	q := newQueueState(t)
	q.run("soon", 500, time.Minute, 3*time.Minute)
	q.run("late", 500, time.Minute, 60*time.Minute)
	q.wait("pair", 50, 2, 500, 0)
	f := q.forecast(t)
	job := f.Jobs[keyOf("pair")]
	if first, all := after(t, job.First, f.Draws, 0.5), after(t, job.All, f.Draws, 0.5); first > 4*time.Minute || all < 40*time.Minute {
		t.Errorf("instances start in %s and %s", first, all)
	}
}

// The draws follow from the snapshot alone.
func TestForecastQueue_IsDeterministic(t *testing.T) {
	t.Parallel()
	build := func() string {
		q := newQueueState(t)
		for i := range 4 {
			q.run(fmt.Sprint("old", i), 250, time.Minute, time.Duration(i+2)*time.Minute)
		}
		q.wait("a", 50, 3, 250, 5*time.Minute)
		q.wait("b", 40, 3, 500, 0)
		f := q.forecast(t)
		return fmt.Sprintf("%+v %+v", *f.Jobs[keyOf("a")], *f.Jobs[keyOf("b")])
	}
	if x, y := build(), build(); x != y {
		t.Errorf("%s\n%s", x, y)
	}
}

func TestForecastQueue_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	q := newQueueState(t)
	q.run("old", 1000, time.Minute, time.Hour)
	q.wait("next", 50, 1, 1000, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set := coretest.Policies()
	defer set.Unpin()
	if _, err := lookahead.ForecastQueue(ctx, q.txn.Commit(), forecastNow, set); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
