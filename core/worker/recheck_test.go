package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// Planning takes time. A recheck that a policy requests for a moment later must not be lost
// because that moment has passed meanwhile.
func TestWorker_RetainsRecheckThatElapsedWhilePlanning(t *testing.T) {
	start := time.Unix(1000, 0)
	w := New(Config{Clock: clock.NewVirtual(start.Add(time.Second)), NewEvalID: func() string { return "new" }})
	for recheck, want := range map[int64]bool{
		start.Add(time.Millisecond).UnixNano(): true,
		start.UnixNano():                       false, // the time of this call
		0:                                      false,
	} {
		out := &scheduler.Outcome{
			Plan: &model.Plan{Now: start.UnixNano()}, RecheckAt: recheck,
			Failed: map[string]*model.Explanation{"g": {}},
		}
		got := false
		for _, e := range w.resultEvals(&model.Evaluation{ID: "e", JobID: "j"}, state.New().Snapshot(), out) {
			got = got || e.TriggeredBy == model.TriggerRecheck && e.WaitUntil == recheck
		}
		if got != want {
			t.Errorf("recheck at %d, planned at %d: queued %v, want %v", recheck, start.UnixNano(), got, want)
		}
	}
}

// A policy may request a recheck in each call, at a time that differs from the pending one.
// If each call added an evaluation, a job that waits for long would be evaluated ever more often.
func TestWorker_RetainsOneRecheckOfAJob(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(d time.Duration) int64 { return now.Add(d).UnixNano() }
	w := New(Config{Clock: clock.NewVirtual(now), NewEvalID: func() string { return "new" }})
	for _, test := range []struct {
		name    string
		pending model.Evaluation
		want    bool
	}{
		{"same time", model.Evaluation{WaitUntil: at(time.Minute)}, false},
		{"earlier", model.Evaluation{WaitUntil: at(time.Second)}, false},
		{"later", model.Evaluation{WaitUntil: at(time.Hour)}, true},
		{"due", model.Evaluation{WaitUntil: at(0)}, true},
		{"does not wait", model.Evaluation{}, true},
		{"blocked", model.Evaluation{Status: model.EvalBlocked}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			txn := state.New().Begin(1)
			test.pending.ID, test.pending.JobID = "pending", "j"
			txn.EvalWriter().Upsert(&test.pending)
			defer txn.Abort()
			out := &scheduler.Outcome{Plan: &model.Plan{Now: at(0)}, RecheckAt: at(time.Minute), Failed: map[string]*model.Explanation{"g": {}}}
			list := w.resultEvals(&model.Evaluation{ID: "e", JobID: "j"}, txn.Snapshot(), out)
			got := slices.ContainsFunc(list, func(e *model.Evaluation) bool { return e.WaitUntil == out.RecheckAt })
			if got != test.want {
				t.Errorf("recheck queued: %v, want %v", got, test.want)
			}
		})
	}
}

// A recordingQueue is a queue and planner that records plans and results.
type recordingQueue struct {
	plans   []*model.Plan
	written []*model.Evaluation
}

func (*recordingQueue) Ack(context.Context, string, broker.Token, uint64) error { return nil }
func (*recordingQueue) Nack(context.Context, string, broker.Token) error        { return nil }
func (*recordingQueue) Renew(context.Context, string, broker.Token) error       { return nil }

func (d *recordingQueue) Submit(_ context.Context, p *model.Plan) (*model.PlanResult, error) {
	d.plans = append(d.plans, p)
	return &model.PlanResult{Committed: []int{0}}, nil
}

func (d *recordingQueue) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	d.written = append(d.written, evals...)
	return nil
}

// The leader delivers an evaluation that was delayed until a claim expires, to a server
// with a clock that is five minutes slow. The binding claims again. By the clock of that server,
// the expired claim would still be reserved, and nothing would evaluate it again.
func TestWorker_DeliveredRecheckHasElapsed(t *testing.T) {
	expiry := time.Unix(10_000, 0)
	txn := state.New().Begin(1)
	cluster := &model.Cluster{ID: "m1", Capacity: model.Resources{"cpu": 10}}
	b := &model.Binding{
		Namespace: "default", ID: "b", Priority: 5, Replicas: 1, Resources: model.Resources{"cpu": 10}, Preempts: true,
	}
	victim := &model.Binding{Namespace: "default", ID: "victim", Replicas: 1, Resources: model.Resources{"cpu": 10}}
	for _, err := range []error{txn.ClusterWriter().Upsert(cluster), txn.BindingWriter().Upsert(b), txn.BindingWriter().Upsert(victim)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	txn.AssignmentWriter().Upsert(&model.Assignment{
		ID: "leaving", Binding: victim.Key(), ClusterID: "m1", Replicas: 1, Vec: victim.TotalAsk(1), Desired: model.DesiredEvict,
	})
	txn.ClaimWriter().Upsert(&model.Claim{
		ID: "claim", Claimant: b.Key(), ClusterID: "m1", Vec: b.TotalAsk(1), Priority: 5, Expiry: expiry.UnixNano(),
	})
	txn.ConfigWriter().Set(coretest.AllPreempt())
	snap := txn.Snapshot()
	policies := coretest.Policies()
	t.Cleanup(policies.Unpin)
	queue := &recordingQueue{}
	w := New(Config{
		Queue: queue, Planner: queue, Evals: queue, States: oneState{snap}, Clock: clock.NewVirtual(expiry.Add(-5 * time.Minute)),
		Scheduler: scheduler.New(scheduler.Config{Policies: policies}), NewEvalID: func() string { return "new" },
	})
	eval := &model.Evaluation{
		ID: "e", Namespace: "default", JobID: "b", Type: model.JobBinding, Priority: 5, WaitUntil: expiry.UnixNano(),
	}
	if err := w.Work(context.Background(), broker.Delivery{Eval: eval}); err != nil {
		t.Fatal(err)
	}
	if len(queue.plans) != 1 || len(queue.plans[0].Groups) != 1 || len(queue.plans[0].Groups[0].Claims) != 1 {
		t.Fatalf("plans %+v, want one with a new claim", queue.plans)
	}
	for _, e := range queue.written {
		if e.WaitUntil != 0 && e.ID != eval.ID && e.WaitUntil <= expiry.UnixNano() {
			t.Errorf("evaluation is already due: %+v", e)
		}
	}
	txn.Abort()
}

// oneState returns a single state.
type oneState struct{ snap *state.Snapshot }

func (o oneState) WaitIndex(context.Context, uint64) (*state.Snapshot, error) { return o.snap, nil }

// Both the evaluation that saw repeated failures and its delayed retry report them. After
// the retry, they are no longer reported.
func TestWorker_StatusTextReportsDelayedRetries(t *testing.T) {
	w := New(Config{Clock: clock.NewVirtual(time.Unix(1000, 0)), NewEvalID: func() string { return "new" }})
	j := coretest.Job("j").Obj()
	j.Groups[0].Job = j
	at := time.Unix(1010, 0).UnixNano()
	out := &scheduler.Outcome{Plan: &model.Plan{Now: 1}, RecheckAt: at, Retries: []reconcile.Retry{
		{Last: &model.Allocation{Job: j, Group: j.Groups[0], Index: 2, Incarnation: 4}, Failures: 3, At: at},
	}}
	const want = "j.g[2] failed 3 times in a row: again at 1970-01-01T00:16:50Z"
	list := w.resultEvals(&model.Evaluation{ID: "e", JobID: "j"}, state.New().Snapshot(), out)
	if len(list) != 2 || list[0].StatusText != want || list[1].StatusText != want || list[1].WaitUntil != at {
		t.Errorf("status texts are %q and %q, want %q", list[0].StatusText, list[len(list)-1].StatusText, want)
	}
	list = w.resultEvals(list[1], state.New().Snapshot(), &scheduler.Outcome{Plan: &model.Plan{Now: at}})
	if len(list) != 1 || list[0].StatusText != "" {
		t.Errorf("status text after the retry is %q, want none", list[0].StatusText)
	}
}
