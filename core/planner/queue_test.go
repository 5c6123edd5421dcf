package planner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/state"
)

// stopPlan returns a plan that changes nothing.
func stopPlan(evalID string, priority int32) *model.Plan {
	return &model.Plan{
		EvalID: evalID, Job: key("web"), Priority: priority,
		Groups: []model.CommitGroup{{Stops: []model.Stop{{AllocID: "none"}}}},
	}
}

func TestQueue_HigherPriorityFirstThenFirstCome(t *testing.T) {
	t.Parallel()
	q := planner.NewQueue()
	q.SetEnabled(true)
	applier := planner.NewApplier(planner.Config{Store: state.New(), Queue: q, MaxPlans: 1})
	var order []string
	pending := map[string]*planner.PendingPlan{}
	for _, p := range []*model.Plan{
		stopPlan("a50", 50), stopPlan("b90", 90), stopPlan("c-5", -5), stopPlan("d50", 50), stopPlan("e90", 90),
	} {
		h, err := q.Enqueue(p)
		if err != nil {
			t.Fatal(err)
		}
		pending[p.EvalID] = h
	}
	for range 5 {
		if _, err := applier.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, h := range pending {
			select {
			case <-h.Done():
				order = append(order, id)
				delete(pending, id)
			default:
			}
		}
	}
	if got := strings.Join(order, " "); got != "b90 e90 a50 d50 c-5" {
		t.Errorf("order %s", got)
	}
}

func TestQueue_DisabledRefusesAndFlushes(t *testing.T) {
	t.Parallel()
	q := planner.NewQueue()
	if _, err := q.Enqueue(stopPlan("a", 1)); !errors.Is(err, planner.ErrDisabled) {
		t.Errorf("a new queue answers %v", err)
	}
	q.SetEnabled(true)
	p, err := q.Enqueue(stopPlan("a", 1))
	if err != nil || q.Depth() != 1 {
		t.Fatalf("depth %d, %v", q.Depth(), err)
	}
	if _, err := p.Result(); err == nil {
		t.Error("a result before there is one")
	}
	q.SetEnabled(false)
	<-p.Done()
	if _, err := p.Result(); !errors.Is(err, planner.ErrDisabled) || q.Depth() != 0 {
		t.Errorf("flushed with %v, depth %d", err, q.Depth())
	}
	q.SetEnabled(true)
	if _, err := q.Enqueue(stopPlan("a", 1)); err != nil {
		t.Errorf("enabled again: %v", err)
	}
}

func TestQueue_CanceledSubmitWithdrawsItsPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := planner.NewQueue()
		q.SetEnabled(true)
		ctx, cancel := context.WithCancel(t.Context())
		// Enough of them to make the queue remove withdrawn plans.
		const impatient = 200
		failed := make(chan error, impatient)
		for range impatient {
			go func() {
				_, err := q.Submit(ctx, stopPlan("impatient", 90))
				failed <- err
			}()
		}
		patient, err := q.Enqueue(stopPlan("patient", 1))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		for range impatient {
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("withdrawn with %v", err)
			}
		}
		if q.Depth() != 1 {
			t.Errorf("depth %d", q.Depth())
		}
		applier := planner.NewApplier(planner.Config{Store: state.New(), Queue: q})
		if n, err := applier.Step(t.Context()); n != 1 || err != nil {
			t.Errorf("took %d plans, %v", n, err)
		}
		if _, err := patient.Result(); err != nil {
			t.Error(err)
		}
	})
}

func TestQueue_CanceledSubmitOfTakenPlanReportsUncertainty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, coretest.Job("web").Ask(100, 100, 0).Obj())
		gate := newGate(c)
		applier, stop := c.start(gate)
		defer stop()
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error)
		go func() {
			_, err := applier.Queue().Submit(ctx, c.place("w0", "web", 0, "n0"))
			answer <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-answer; !errors.Is(err, context.Canceled) || !errors.Is(err, planner.ErrUnknownOutcome) {
			t.Errorf("got error %v, want one that says the plan may still be applied", err)
		}
		gate.pass <- nil
		synctest.Wait()
		if c.store.Snapshot().Alloc("w0") == nil {
			t.Error("the plan in flight was not applied")
		}
	})
}
