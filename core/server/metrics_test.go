package server

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
)

// Lost work counts from the last checkpoint on, and a victim counts as repeated if the same
// instance was evicted before. Groups that were not committed do not count.
func TestMetrics_CountLostWorkAndRepeatedVictims(t *testing.T) {
	t.Parallel()
	job := coretest.Job("low").Count(3).With(func(g *model.Group) { g.Checkpoint = int64(time.Minute) }).Obj()
	store := state.New()
	coretest.PutJobs(store, job)
	txn := store.Begin(store.Snapshot().Index() + 1)
	if err := txn.NodeWriter().Upsert(coretest.Node("n1", 1000, 1000, 1000)); err != nil {
		t.Fatal(err)
	}
	earlier := coretest.Running("earlier", job, 0, 0, "n1")
	earlier.Desired, earlier.Client = model.DesiredEvict, model.ClientComplete
	again, first := coretest.Running("again", job, 0, 0, "n1"), coretest.Running("first", job, 0, 1, "n1")
	again.Incarnation, first.Incarnation = 1, 1 // the earlier run of the second one has ended by itself
	txn.AllocWriter().Upsert(earlier, again, first, coretest.Running("other", job, 0, 2, "n1"))
	snap := txn.Commit()

	set := coretest.Policies()
	defer set.Unpin()
	version := set.Default()
	plan := &model.Plan{Now: int64(90 * time.Second), Groups: []model.CommitGroup{
		{Evictions: []model.Eviction{{AllocID: "again"}, {AllocID: "first"}, {AllocID: "collected"}}},
		{Evictions: []model.Eviction{{AllocID: "other"}}},
	}}
	m := newMetrics()
	m.countVictims(snap, plan, &model.PlanResult{Committed: []int{0}}, &scheduler.Outcome{Version: version})
	if lost, repeated := counterValue(t, m.lostWork), counterValue(t, m.repeated); lost != 60 || repeated != 1 {
		t.Errorf("lost work of %v s, %v repeated victims", lost, repeated)
	}
}

// counterValue returns the value of a vector with one counter.
func counterValue(t *testing.T, c *prometheus.CounterVec) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
		t.Fatal(families, err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

// The age of the oldest blocked evaluation is that of its creation, by type.
func TestOldestBlocked_IsByType(t *testing.T) {
	t.Parallel()
	store := state.New()
	txn := store.Begin(1)
	for i, e := range []struct {
		kind   model.JobType
		status model.EvalStatus
		at     int64
	}{{model.JobBatch, model.EvalBlocked, 30}, {model.JobBatch, model.EvalBlocked, 20}, {model.JobBatch, model.EvalPending, 10}, {model.JobSystem, model.EvalComplete, 5}} {
		txn.EvalWriter().Upsert(&model.Evaluation{ID: string(rune('a' + i)), Namespace: "default", JobID: "j", Type: e.kind, Status: e.status, CreateTime: e.at})
	}
	at := oldestBlocked(txn.Commit())
	if at[model.JobBatch] != 20 || at[model.JobSystem] != 0 || at[model.JobService] != 0 {
		t.Errorf("%v", at)
	}
}
