package worker_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/worker"
)

// A queue is a broker with a feed over a state: what is applied is passed to the feed.
type queue struct {
	t      *testing.T
	store  *state.Store
	broker *broker.Broker
	feed   worker.Feed
}

func newQueue(t *testing.T) *queue {
	b, err := broker.New(broker.Config{Clock: clock.NewVirtual(time.Unix(0, 1))})
	if err != nil {
		t.Fatal(err)
	}
	b.Enable()
	return &queue{t, state.New(), b, worker.Feed{Broker: b, Blocked: broker.NewBlocked(b), Policies: coretest.Policies()}}
}

// apply applies a change like an entry of the log.
func (q *queue) apply(do func(*state.Txn) []*model.Evaluation) {
	txn := q.store.Begin(q.store.Snapshot().Index() + 1)
	evals := do(txn)
	q.feed.Evals(txn.Commit(), 1, evals...)
}

func (q *queue) submit(id string, priority int32) {
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		b := &model.Binding{Namespace: "default", ID: id, Priority: priority}
		if err := txn.BindingWriter().Upsert(b); err != nil {
			q.t.Fatal(err)
		}
		changed := apply.QueuePriority(txn.EvalWriter(), 1, b)
		if len(changed) > 0 {
			return changed
		}
		e := &model.Evaluation{ID: id + "-" + time.Duration(txn.Index()).String(), Namespace: "default", JobID: id, Type: model.JobBinding}
		txn.EvalWriter().Upsert(e)
		return []*model.Evaluation{e}
	})
}

func (q *queue) next() broker.Delivery {
	q.t.Helper()
	d, ok := q.broker.TryDequeue(nil)
	if !ok {
		q.t.Fatal("no evaluation is queued")
	}
	return d
}

// Karmada loses a priority that is raised while the binding is queued, and uses the old one
// if it is raised during processing (karmada-io/karmada, tested with 1.19).
func TestBindingQueue_UsesCurrentPriority(t *testing.T) {
	q := newQueue(t)
	q.submit("x", 1)
	q.submit("y", 5)
	q.submit("x", 9) // while it is queued
	d := q.next()
	if d.Eval.JobID != "x" || d.Eval.Priority != 9 {
		t.Fatalf("first is %s with priority %d, want x with 9", d.Eval.JobID, d.Eval.Priority)
	}
	q.submit("x", 2) // while it is processed
	if err := q.broker.Ack(d.Eval.ID, d.Token, q.store.Snapshot().Index()-1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		id       string
		priority int32
	}{{"y", 5}, {"x", 2}} {
		if d = q.next(); d.Eval.JobID != want.id || d.Eval.Priority != want.priority {
			t.Errorf("next is %s with priority %d, want %s with %d", d.Eval.JobID, d.Eval.Priority, want.id, want.priority)
		}
	}
}

// Results that are made from an old copy after the change have the new priority as well.
func TestBindingQueue_RanksFollowUpsByCurrentPriority(t *testing.T) {
	q := newQueue(t)
	q.submit("x", 1)
	d := q.next()
	q.submit("x", 7)
	q.apply(func(txn *state.Txn) []*model.Evaluation {
		e := &model.Evaluation{ID: "after", Namespace: "default", JobID: "x", Type: model.JobBinding, Priority: d.Eval.Priority, Previous: d.Eval.ID}
		txn.EvalWriter().Upsert(e)
		return nil
	})
	if e := q.store.Snapshot().Eval("after"); e.Priority != 7 {
		t.Errorf("follow-up has priority %d, want 7", e.Priority)
	}
}

// Bindings of equal priority are processed in order of arrival, however often others caused
// a retry.
func TestBindingQueue_ServesEqualPrioritiesByArrival(t *testing.T) {
	q := newQueue(t)
	for _, id := range []string{"first", "second", "third"} {
		q.submit(id, 3)
	}
	d := q.next()
	q.apply(func(txn *state.Txn) []*model.Evaluation { // the first one finds no capacity, and is blocked in another evaluation
		done := *d.Eval
		done.Status = model.EvalComplete
		again := &model.Evaluation{ID: "again", Namespace: "default", JobID: "first", Type: model.JobBinding, Previous: d.Eval.ID}
		txn.EvalWriter().Upsert(&done, again)
		return []*model.Evaluation{&done, again}
	})
	if err := q.broker.Ack(d.Eval.ID, d.Token, d.WaitIndex); err != nil {
		t.Fatal(err)
	}
	var order []string
	for range 3 {
		order = append(order, q.next().Eval.JobID)
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(order, want) {
		t.Errorf("processed in order %v, want %v", order, want)
	}
}

// With the gate off, bindings are queued in order of arrival. Queued ones follow the gate
// as soon as it changes.
func TestBindingQueue_FollowsPriorityGate(t *testing.T) {
	q := newQueue(t)
	gate := func(on bool) {
		q.apply(func(txn *state.Txn) []*model.Evaluation {
			txn.ConfigWriter().Set(&model.SchedulerConfig{Gates: model.FeatureGates{PriorityBasedScheduling: &on}})
			return apply.QueuePriorities(txn.EvalWriter(), 1)
		})
	}
	gate(false)
	q.submit("low", 1)
	q.submit("high", 9)
	if d := q.next(); d.Eval.JobID != "low" {
		t.Errorf("gate off: first is %s, want low, which arrived first", d.Eval.JobID)
	}
	q.submit("higher", 10)
	gate(true)
	if d := q.next(); d.Eval.JobID != "higher" || d.Eval.Priority != 10 {
		t.Errorf("gate on: next is %s with priority %d, want higher with 10", d.Eval.JobID, d.Eval.Priority)
	}
}

// A waiting worker receives the evaluation with the highest priority of an entry, not the
// first one: otherwise it would place what another evaluation of the entry evicts.
func TestFeed_DeliversEntryByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		got := make(chan string)
		go func() {
			d, err := q.broker.Dequeue(t.Context(), nil, 0)
			if err != nil {
				t.Error(err)
			}
			got <- d.Eval.JobID
		}()
		synctest.Wait()
		q.apply(func(txn *state.Txn) (evals []*model.Evaluation) {
			for i, priority := range []int32{10, 90, 50} {
				j := coretest.Job(fmt.Sprint("p", i)).Priority(priority).Obj()
				if err := txn.JobWriter().Upsert(j); err != nil {
					t.Fatal(err)
				}
				evals = append(evals, coretest.Eval(j))
			}
			txn.EvalWriter().Upsert(evals...)
			return evals
		})
		if id := <-got; id != "p1" {
			t.Errorf("delivered %s first, want p1, which has the highest priority", id)
		}
	})
}
